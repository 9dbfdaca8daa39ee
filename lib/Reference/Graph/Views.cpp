// Ops that put numbers into other places, and those that make them of nothing.
#include "Calls.h"

using namespace ctxc::reference;

Results meanings::same(Call &c) { return {c.tensor(c.has("self") ? "self" : "input")}; }

Results meanings::viewed(Call &c) {
  Array x = c.tensor("self");
  Shape shape = c.resultShape();
  if (countOf(shape) != x.count()) {
    c.fail("has a result of another number of entries than its operand");
    return {};
  }
  return {x.viewed(shape)};
}

static Results expandedTo(Call &c, const Array &x) {
  if (std::optional<Array> result = x.expanded(c.resultShape()))
    return {*result};
  c.fail("has an operand that does not expand to its result");
  return {};
}

Results meanings::expanded(Call &c) { return expandedTo(c, c.tensor("self")); }
Results meanings::copy(Call &c) { return expandedTo(c, c.tensor("src")); }

Results meanings::fill(Call &c) { return expandedTo(c, c.tensorOrNumber("value")); }

Results meanings::broadcastTensors(Call &c) {
  Results results;
  for (auto [i, x] : llvm::enumerate(c.tensors("tensors"))) {
    std::optional<Array> wide = x ? x->expanded(c.resultShape(i)) : std::nullopt;
    if (!wide)
      c.fail("has an operand that does not expand to its result");
    results.push_back(wide.value_or(Array(Kind::Float, {})));
  }
  return results;
}

Results meanings::unsqueeze(Call &c) {
  Array x = c.tensor("self");
  return {x.unsqueezed(c.axis("dim", x.rank() + 1))};
}

Results meanings::transpose(Call &c) {
  Array x = c.tensor("self");
  bool isPlain = c.name() == "t";
  Shape order;
  for (int64_t i = 0; i < x.rank(); ++i)
    order.push_back(i);
  if (x.rank() > 1)
    std::swap(order[isPlain ? 0 : c.axis("dim0", x.rank())],
              order[isPlain ? 1 : c.axis("dim1", x.rank())]);
  return {x.permuted(order)};
}

Results meanings::permute(Call &c) {
  Array x = c.tensor("self");
  Shape order = c.axes("dims", x.rank());
  if (int64_t(order.size()) != x.rank())
    c.fail("has another number of axes than its operand");
  return c.failure().empty() ? Results{x.permuted(order)} : Results();
}

/// The part of an axis from `start` to `end`, as Python counts.
static Array slicedOf(Call &c, const Array &x, int64_t axis) {
  int64_t size = x.rank() ? x.size(axis) : 0, step = c.integer("step", 1);
  auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t start = clamped(c.integer("start", 0)), end = clamped(c.integer("end", size));
  if (step < 1 || !x.rank()) {
    c.fail("has a step below 1, or an operand without axes");
    return x;
  }
  return x.sliced(axis, start, std::max<int64_t>(0, (end - start + step - 1) / step), step);
}

Results meanings::slice(Call &c) {
  Array x = c.tensor("self");
  return {slicedOf(c, x, c.axis("dim", x.rank(), 0))};
}

/// Writes `from` into the places of `to`, which is a view of an array that is written.
static void assign(Array to, const Array &from, Call &c) {
  std::optional<Array> wide = from.expanded(to.shape());
  if (!wide || to.isComplex() || from.isComplex())
    return c.fail("has a source that does not fit in its place");
  Array numbers = wide->contiguous();
  const double *next = numbers.data();
  double *first = to.data();
  eachPlace(to, [&](int64_t place) { first[place] = *next++; });
}

Results meanings::sliceScatter(Call &c) {
  Array x = c.tensor("self").copied();
  assign(slicedOf(c, x, c.axis("dim", x.rank(), 0)), c.tensor("src"), c);
  return {x};
}

static std::optional<int64_t> indexAlong(Call &c, const Array &x, int64_t axis) {
  int64_t index = c.integer("index");
  index += index < 0 ? x.size(axis) : 0;
  if (index >= 0 && index < x.size(axis))
    return index;
  c.fail("has an index that its operand lacks");
  return std::nullopt;
}

Results meanings::select(Call &c) {
  Array x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  std::optional<int64_t> index = c.failure().empty() ? indexAlong(c, x, axis) : std::nullopt;
  return index ? Results{x.selected(axis, *index)} : Results();
}

Results meanings::selectScatter(Call &c) {
  Array x = c.tensor("self").copied();
  int64_t axis = c.axis("dim", x.rank());
  std::optional<int64_t> index = c.failure().empty() ? indexAlong(c, x, axis) : std::nullopt;
  if (index)
    assign(x.selected(axis, *index), c.tensor("src"), c);
  return {x};
}

/// split, split_with_sizes, chunk, unbind: one part behind another, as long as the results are.
Results meanings::parts(Call &c) {
  Array x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank(), 0), start = 0;
  Results results;
  for (unsigned i = 0; i < c.resultCount() && c.failure().empty(); ++i) {
    bool isRow = c.name() == "unbind";
    int64_t size = isRow ? 1 : c.resultShape(i)[axis];
    if (start + size > x.size(axis)) {
      c.fail("has results that are longer together than its operand");
      return {};
    }
    results.push_back(isRow ? x.selected(axis, start) : x.sliced(axis, start, size));
    start += size;
  }
  return results;
}

Results meanings::joined(Call &c) {
  bool isStack = c.name() == "stack";
  Array result(c.resultKind(), c.resultShape());
  int64_t axis = c.axis("dim", result.rank(), 0), start = 0;
  for (const std::optional<Array> &x : c.tensors("tensors")) {
    if (!x || (x->rank() == 1 && x->size(0) == 0 && result.rank() != 1))
      continue; // torch lets an empty one stand for nothing
    Array part = (isStack ? x->unsqueezed(axis) : *x).as(c.resultKind());
    if (part.rank() != result.rank() || start + part.size(axis) > result.size(axis)) {
      c.fail("has operands that are larger together than its result");
      return {};
    }
    Array place = result.sliced(axis, start, part.size(axis));
    start += part.size(axis);
    if (part.isComplex())
      assign(place.asReal(), part.asReal(), c);
    else
      assign(place, part, c);
  }
  return {result};
}

Results meanings::repeat(Call &c) {
  Array x = c.tensor("self");
  Shape times = c.integers("repeats"), wide, result = c.resultShape();
  for (int64_t i = x.rank(); i < int64_t(times.size()); ++i)
    x = x.unsqueezed(0);
  for (size_t i = 0; i < times.size(); ++i)
    wide.append({times[i], x.size(i)});
  for (size_t i = times.size(); i-- > 0;)
    x = x.unsqueezed(i);
  std::optional<Array> repeated = x.expanded(wide);
  if (!repeated || repeated->count() != countOf(result)) {
    c.fail("has a result of another size than its operand repeated");
    return {};
  }
  return {repeated->viewed(result)};
}

Results meanings::repeatInterleave(Call &c) {
  Array x = c.tensor("self");
  if (c.isTensor("repeats")) {
    c.fail("repeats each entry as often as a tensor says, which has no meaning here");
    return {};
  }
  if (!c.has("dim"))
    x = x.viewed({x.count()});
  int64_t axis = c.axis("dim", x.rank(), 0);
  Shape wide(x.shape());
  wide.insert(wide.begin() + axis + 1, c.integer("repeats"));
  return {x.unsqueezed(axis + 1).expanded(wide)->viewed(c.resultShape())};
}

Results meanings::flip(Call &c) {
  Array x = c.tensor("self");
  for (int64_t axis : c.axes("dims", x.rank())) {
    Array turned(x.kind(), x.shape());
    for (int64_t i = 0, n = x.size(axis); i < n; ++i)
      assign(turned.selected(axis, n - 1 - i), x.selected(axis, i), c);
    x = turned;
  }
  return {x};
}

Results meanings::roll(Call &c) {
  Array x = c.tensor("self");
  Shape shifts = c.integers("shifts"), axes = c.integers("dims");
  if (shifts.size() != axes.size())
    c.fail("rolls all axes as one, which has no meaning here");
  for (auto [shift, dim] : llvm::zip(shifts, axes)) {
    int64_t axis = dim < 0 ? dim + x.rank() : dim;
    Array turned(x.kind(), x.shape());
    for (int64_t i = 0, n = x.size(axis); i < n; ++i)
      assign(turned.selected(axis, ((i + shift) % n + n) % n), x.selected(axis, i), c);
    x = turned;
  }
  return {x};
}

Results meanings::pad(Call &c) {
  Array x = c.tensor("self");
  Shape by = c.integers("pad");
  if (c.text("mode", "constant") != "constant")
    c.fail("pads by '" + c.text("mode", "") + "'; expected a constant");
  Array result = Array::filled(x.kind(), c.resultShape(), c.number("value", 0));
  Array place = result;
  for (int64_t i = 0; 2 * i + 1 < int64_t(by.size()) && c.failure().empty(); ++i) {
    int64_t axis = x.rank() - 1 - i, before = by[2 * i], behind = by[2 * i + 1];
    if (axis < 0 || result.size(axis) != x.size(axis) + before + behind) {
      c.fail("pads by more than its operand has");
      return {};
    }
    // What is padded by less than nothing is cut: a shift by more tokens than there are leaves
    // none.
    int64_t start = std::max<int64_t>(0, -before),
            end = std::min(x.size(axis), x.size(axis) + behind);
    int64_t left = std::max<int64_t>(0, end - start);
    x = x.sliced(axis, left ? start : 0, left);
    place = place.sliced(axis, left ? start + before : 0, left);
  }
  assign(place, x, c);
  return {result};
}

Results meanings::unfold(Call &c) {
  Array x = c.tensor("self");
  int64_t axis = c.axis("dimension", x.rank()), size = c.integer("size"), step = c.integer("step");
  if (size < 1 || step < 1 || size > x.size(axis)) {
    c.fail("has windows that its operand has no room for");
    return {};
  }
  return {x.windows(axis, size, step)};
}

Results meanings::viewAsReal(Call &c) { return {c.tensor("self").asReal()}; }
Results meanings::viewAsComplex(Call &c) { return {c.tensor("self").asComplex()}; }

//===----------------------------------------------------------------------===//
// Of nothing
//===----------------------------------------------------------------------===//

Results meanings::constant(Call &c) {
  llvm::StringRef name = c.name();
  double number = name.contains("full")     ? c.number("fill_value")
                  : name.contains("ones")   ? 1
                  : name == "scalar_tensor" ? c.number("s")
                                            : 0;
  return {Array::filled(c.resultKind(), c.resultShape(), number)};
}

Results meanings::arange(Call &c) {
  Array result(c.resultKind(), c.resultShape());
  double start = c.number("start", 0), step = c.number("step", 1);
  const Tokens &tokens = c.tokens();
  // The positions, where the program counts its tokens itself.
  bool counts = tokens.counted && start == 0 && step == 1 && result.count() == tokens.count &&
                c.integer("end", -1) == tokens.count;
  for (int64_t i = 0; i < result.count(); ++i)
    result.data()[i] = counts ? tokens.positions[i] : start + step * i;
  return {result};
}

Results meanings::eye(Call &c) {
  Array result(c.resultKind(), c.resultShape());
  for (int64_t i = 0; i < std::min(result.size(0), result.size(1)); ++i)
    result.data()[i * result.size(1) + i] = 1;
  return {result};
}

Results meanings::triangle(Call &c) {
  Array x = c.tensor("self").copied();
  if (x.rank() < 2 || x.isComplex()) {
    c.fail("expects a real operand of two axes or more");
    return {};
  }
  int64_t diagonal = c.integer("diagonal", 0), rows = x.size(x.rank() - 2);
  int64_t columns = x.size(x.rank() - 1);
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    if (c.name() == "tril" ? column - row > diagonal : column - row < diagonal)
      x.data()[i] = 0;
  }
  return {x};
}
