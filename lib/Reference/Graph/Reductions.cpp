// Ops that join the entries of some axes.
#include "Calls.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <numeric>

using namespace ctxc::reference;
using llvm::ArrayRef;

/// A copy of `x` whose `axes` are the last ones, in order, and how many entries they have together.
struct Rows {
  Array numbers; ///< row-major
  int64_t width;
  int64_t count() const { return width ? numbers.count() / width : 0; }
  ArrayRef<double> row(int64_t i) const { return {numbers.data() + i * width, size_t(width)}; }
  llvm::MutableArrayRef<double> row(int64_t i) {
    return {numbers.data() + i * width, size_t(width)};
  }
};

static Shape axesBehind(int64_t rank, ArrayRef<int64_t> axes) {
  Shape order;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(axes, i))
      order.push_back(i);
  order.append(axes.begin(), axes.end());
  return order;
}

static Rows rowsOf(Call &c, const Array &x, ArrayRef<int64_t> axes) {
  if (x.isComplex())
    c.fail("has complex numbers, for which it has no meaning here");
  Rows rows{x.permuted(axesBehind(x.rank(), axes)).copied(), 1};
  for (int64_t axis : axes)
    rows.width *= x.size(axis);
  return rows;
}

/// `rows`, of one axis that was put last, with that axis in its place.
static Array putBack(const Rows &rows, int64_t axis) {
  Shape order;
  for (int64_t i = 0; i + 1 < rows.numbers.rank(); ++i)
    order.push_back(i);
  if (rows.numbers.rank())
    order.insert(order.begin() + axis, rows.numbers.rank() - 1);
  return rows.numbers.permuted(order);
}

using Reduce = double (*)(ArrayRef<double>);

/// One number of each row; the caller gives the result its shape.
template <typename Function> static Results reduced(Call &c, ArrayRef<int64_t> axes, Function f) {
  Rows rows = rowsOf(c, c.tensor("self"), axes);
  Array result(Kind::Float, c.resultShape());
  if (result.count() * rows.width != rows.numbers.count() || (!rows.width && result.count())) {
    c.fail("has no entries to join, or a result of another size");
    return {};
  }
  for (int64_t i = 0; i < rows.count(); ++i)
    result.data()[i] = f(ArrayRef<double>(rows.row(i)));
  return {result};
}

static double sumOf(ArrayRef<double> x) { return std::accumulate(x.begin(), x.end(), 0.0); }
static double largestOf(ArrayRef<double> x) { return *std::max_element(x.begin(), x.end()); }
static double leastOf(ArrayRef<double> x) { return *std::min_element(x.begin(), x.end()); }

/// Functions of a row, by name.
static const llvm::StringMap<Reduce> &reductions();

Results meanings::reduction(Call &c) {
  return reduced(c, c.axes("dim", c.tensor("self").rank()), reductions().lookup(c.name()));
}

static double logSumExp(ArrayRef<double> x) {
  double largest = largestOf(x), sum = 0;
  if (std::isinf(largest))
    return largest;
  for (double each : x)
    sum += std::exp(each - largest);
  return largest + std::log(sum);
}

Results meanings::variance(Call &c) {
  double correction = c.has("correction")        ? c.number("correction")
                      : c.flag("unbiased", true) ? 1
                                                 : 0;
  bool isRoot = c.name() == "std";
  return reduced(c, c.axes("dim", c.tensor("self").rank()), [=](ArrayRef<double> x) {
    double mean = sumOf(x) / x.size(), sum = 0;
    for (double each : x)
      sum += (each - mean) * (each - mean);
    double variance = sum / std::max(0.0, double(x.size()) - correction);
    return isRoot ? std::sqrt(variance) : variance;
  });
}

Results meanings::vectorNorm(Call &c) {
  double order = c.number(c.has("ord") ? "ord" : "p", 2);
  return reduced(c, c.axes("dim", c.tensor("self").rank()), [=](ArrayRef<double> x) {
    double sum = 0;
    for (double each : x)
      sum =
          std::isinf(order) ? std::max(sum, std::abs(each)) : sum + std::pow(std::abs(each), order);
    return std::isinf(order) ? sum : std::pow(sum, 1 / order);
  });
}

/// max and min: of two arrays, of all entries, or along an axis with the place of what was found.
Results meanings::extreme(Call &c) {
  bool isMax = c.name() == "max";
  if (c.has("other"))
    return meaningOf(isMax ? "maximum" : "minimum")(c);
  if (!c.has("dim"))
    return reduced(c, c.axes("dim", c.tensor("self").rank()), isMax ? largestOf : leastOf);
  Array x = c.tensor("self");
  Rows rows = rowsOf(c, x, {c.axis("dim", x.rank())});
  Results results{Array(Kind::Float, c.resultShape(0)), Array(Kind::Integer, c.resultShape(1))};
  for (int64_t i = 0; i < rows.count(); ++i) {
    ArrayRef<double> row = rows.row(i);
    auto found =
        isMax ? std::max_element(row.begin(), row.end()) : std::min_element(row.begin(), row.end());
    results[0].data()[i] = *found;
    results[1].data()[i] = found - row.begin();
  }
  return results;
}

Results meanings::argExtreme(Call &c) {
  Array x = c.tensor("self");
  bool isMax = c.name() == "argmax";
  Shape axes = c.has("dim") ? Shape{c.axis("dim", x.rank())} : c.axes("dim", x.rank());
  return reduced(c, axes, [=](ArrayRef<double> row) {
    auto found =
        isMax ? std::max_element(row.begin(), row.end()) : std::min_element(row.begin(), row.end());
    return double(found - row.begin());
  });
}

//===----------------------------------------------------------------------===//
// Along an axis, of which each entry keeps its place
//===----------------------------------------------------------------------===//

template <typename Function> static Results along(Call &c, llvm::StringRef tensor, Function f) {
  Array x = c.tensor(tensor);
  if (!x.rank())
    x = x.viewed({1});
  int64_t axis = c.axis("dim", x.rank());
  Rows rows = rowsOf(c, x, {axis});
  for (int64_t i = 0; i < rows.count(); ++i)
    f(rows.row(i));
  return {putBack(rows, axis)};
}

Results meanings::softmax(Call &c) {
  bool isLog = c.name().contains("log");
  return along(c, "self", [=](llvm::MutableArrayRef<double> x) {
    double sum = logSumExp(x);
    for (double &each : x)
      each = isLog ? each - sum : std::exp(each - sum);
  });
}

Results meanings::cumulative(Call &c) {
  bool isSum = c.name() == "cumsum";
  return along(c, "self", [=](llvm::MutableArrayRef<double> x) {
    for (size_t i = 1; i < x.size(); ++i)
      x[i] = isSum ? x[i] + x[i - 1] : x[i] * x[i - 1];
  });
}

Results meanings::difference(Call &c) {
  Array x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank(), -1);
  if (c.integer("n", 1) != 1 || c.has("append")) {
    c.fail("is known for n = 1 and without what is appended alone");
    return {};
  }
  Rows rows = rowsOf(c, x, {axis});
  std::optional<Array> before = c.optional("prepend");
  Rows first = before ? rowsOf(c, *before, {axis}) : Rows{Array(Kind::Float, {0}), 0};
  if (before && first.count() != rows.count()) {
    c.fail("has operands whose shapes do not fit");
    return {};
  }
  Shape shape(rows.numbers.shape());
  shape.back() = rows.width + first.width - 1;
  Rows result{Array(Kind::Float, shape), shape.back()};
  for (int64_t i = 0; i < rows.count(); ++i) {
    std::vector<double> whole;
    if (before)
      llvm::append_range(whole, ArrayRef<double>(first.row(i)));
    llvm::append_range(whole, ArrayRef<double>(rows.row(i)));
    for (int64_t j = 0; j < result.width; ++j)
      result.row(i)[j] = whole[j + 1] - whole[j];
  }
  return {putBack(result, axis)};
}

/// Scores of less than this are those of entries that are not to be chosen.
constexpr double masked = -1e30;

/// Of equal entries at the end of those that topk keeps, PyTorch does not say which it keeps: their
/// places are open, not their numbers.
static void checkLast(Call &c, ArrayRef<double> row, ArrayRef<int64_t> order, int64_t kept,
                      bool largest) {
  if (kept < 1 || kept >= int64_t(row.size()) || !c.isRead(1))
    return;
  double last = row[order[kept - 1]];
  if (last != row[order[kept]] || !((largest ? last : -last) > masked))
    return;
  llvm::SmallString<32> text;
  llvm::APFloat(last).toString(text);
  c.leaveOpen("keeps " + llvm::Twine(kept) + " of " + llvm::Twine(row.size()) +
              " entries, and has the last of these, " + text +
              ", several times: PyTorch does not say which of them it keeps, and other programs "
              "give other numbers; expected different entries, as of other tokens or weights");
}

/// topk, sort, argsort: the entries of an axis by size, and where they were.
Results meanings::sorted(Call &c) {
  Array x = c.tensor("self");
  bool isTop = c.name() == "topk",
       largest = isTop ? c.flag("largest", true) : c.flag("descending", false);
  int64_t axis = c.axis("dim", x.rank(), -1);
  Rows rows = rowsOf(c, x, {axis});
  int64_t kept = isTop ? c.integer("k") : rows.width;
  if (kept < 0 || kept > rows.width) {
    c.fail("asks for more entries than its operand has");
    return {};
  }
  Shape shape(rows.numbers.shape());
  shape.back() = kept;
  Rows found{Array(Kind::Float, shape), kept}, places{Array(Kind::Integer, shape), kept};
  std::vector<int64_t> order(rows.width);
  for (int64_t i = 0; i < rows.count(); ++i) {
    ArrayRef<double> row = rows.row(i);
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) {
      return row[a] == row[b] ? a < b : largest ? row[a] > row[b] : row[a] < row[b];
    });
    if (isTop)
      checkLast(c, row, order, kept, largest);
    for (int64_t j = 0; j < kept; ++j) {
      found.row(i)[j] = row[order[j]];
      places.row(i)[j] = order[j];
    }
  }
  if (c.name() == "argsort")
    return {putBack(places, axis)};
  return {putBack(found, axis), putBack(places, axis)};
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

Results meanings::norm(Call &c) {
  Array x = c.tensor("input");
  bool centres = c.name() != "rms_norm";
  int64_t last = c.integers("normalized_shape").size();
  if (last < 1 || last > x.rank()) {
    c.fail("has a normalized_shape that its operand lacks");
    return {};
  }
  Shape axes;
  for (int64_t i = x.rank() - last; i < x.rank(); ++i)
    axes.push_back(i);
  Rows rows = rowsOf(c, x, axes);
  double eps = c.number("eps", centres ? 1e-5 : 0x1p-23);
  std::optional<Array> weight = c.optional("weight"), bias = c.optional("bias");
  Array w = weight ? weight->contiguous() : Array(), b = bias ? bias->contiguous() : Array();
  if ((weight && w.count() != rows.width) || (bias && b.count() != rows.width))
    c.fail("has a weight or a bias of another size");
  for (int64_t i = 0; c.failure().empty() && i < rows.count(); ++i) {
    llvm::MutableArrayRef<double> row = rows.row(i);
    double mean = centres ? sumOf(row) / rows.width : 0, square = 0;
    for (double each : row)
      square += (each - mean) * (each - mean);
    double scale = 1 / std::sqrt(square / rows.width + eps);
    for (int64_t j = 0; j < rows.width; ++j)
      row[j] = (row[j] - mean) * scale * (weight ? w.at(j) : 1) + (bias ? b.at(j) : 0);
  }
  return {rows.numbers};
}

Results meanings::groupNorm(Call &c) {
  Array x = c.tensor("input").copied();
  int64_t groups = c.integer("num_groups"), channels = x.rank() > 1 ? x.size(1) : 0;
  if (x.rank() < 2 || groups < 1 || channels % groups) {
    c.fail("has groups that do not divide its channels");
    return {};
  }
  int64_t inner = x.count() / std::max<int64_t>(1, x.size(0) * channels);
  int64_t width = channels / groups * inner;
  double eps = c.number("eps", 1e-5);
  std::optional<Array> weight = c.optional("weight"), bias = c.optional("bias");
  for (int64_t i = 0; i < x.size(0) * groups; ++i) {
    llvm::MutableArrayRef<double> row(x.data() + i * width, width);
    double mean = sumOf(row) / width, square = 0;
    for (double each : row)
      square += (each - mean) * (each - mean);
    for (int64_t j = 0; j < width; ++j) {
      int64_t channel = i % groups * (channels / groups) + j / inner;
      row[j] = (row[j] - mean) / std::sqrt(square / width + eps) *
                   (weight ? weight->contiguous().at(channel) : 1) +
               (bias ? bias->contiguous().at(channel) : 0);
    }
  }
  return {x};
}

static double meanOf(ArrayRef<double> x) { return sumOf(x) / x.size(); }
static double productOf(ArrayRef<double> x) {
  return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>());
}
static double anyOf(ArrayRef<double> x) {
  return llvm::any_of(x, [](double each) { return each != 0; });
}
static double allOf(ArrayRef<double> x) {
  return llvm::all_of(x, [](double each) { return each != 0; });
}

static const llvm::StringMap<Reduce> &reductions() {
  static const llvm::StringMap<Reduce> all = {
      {"sum", sumOf},    {"mean", meanOf}, {"prod", productOf}, {"amax", largestOf},
      {"amin", leastOf}, {"any", anyOf},   {"all", allOf},      {"logsumexp", logSumExp}};
  return all;
}
