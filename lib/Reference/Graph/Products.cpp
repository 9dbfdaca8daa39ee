// Products of matrices, and what is made of them.
#include "Calls.h"
#include <cmath>

using namespace ctxc::reference;
using llvm::ArrayRef;

using ConstMap = Eigen::Map<const Matrix>;

/// The product of stacks of matrices, (…, m, k) times (…, k, n), whose leading axes are joined.
static std::optional<Array> product(const Array &a, const Array &b) {
  if (a.rank() < 2 || b.rank() < 2 || a.size(a.rank() - 1) != b.size(b.rank() - 2) ||
      a.isComplex() || b.isComplex())
    return std::nullopt;
  std::optional<Shape> shape = broadcast(a.shape().drop_back(2), b.shape().drop_back(2));
  if (!shape)
    return std::nullopt;
  int64_t m = a.size(a.rank() - 2), k = a.size(a.rank() - 1), n = b.size(b.rank() - 1);
  Shape wideA(*shape), wideB(*shape), whole(*shape);
  wideA.append({m, k});
  wideB.append({k, n});
  whole.append({m, n});
  Array left = a.expanded(wideA)->contiguous(), right = b.expanded(wideB)->contiguous();
  Array result(Kind::Float, whole);
  for (int64_t i = 0, count = countOf(*shape); i < count; ++i)
    Eigen::Map<Matrix>(result.data() + i * m * n, m, n).noalias() =
        ConstMap(left.data() + i * m * k, m, k) * ConstMap(right.data() + i * k * n, k, n);
  return result;
}

Results meanings::matmul(Call &c) {
  Array a = c.tensor("self"), b = c.tensor(c.has("mat2") ? "mat2" : "other");
  bool isRow = a.rank() == 1, isColumn = b.rank() == 1;
  std::optional<Array> result =
      product(isRow ? a.unsqueezed(0) : a, isColumn ? b.unsqueezed(1) : b);
  if (!result) {
    c.fail("has matrices that do not fit");
    return {};
  }
  return {result->viewed(c.resultShape())};
}

Results meanings::outer(Call &c) {
  Array a = c.tensor("self"), b = c.tensor(c.has("vec2") ? "vec2" : "other");
  std::optional<Array> result =
      a.rank() == 1 && b.rank() == 1 ? product(a.unsqueezed(1), b.unsqueezed(0)) : std::nullopt;
  if (!result) {
    c.fail("expects two real vectors");
    return {};
  }
  return {*result};
}

Results meanings::linear(Call &c) {
  Array x = c.tensor("input"), w = c.tensor("weight");
  if (w.rank() == 1)
    w = w.unsqueezed(0);
  int64_t in = w.size(1);
  if (!x.rank() || x.size(x.rank() - 1) != in) {
    c.fail("has an input that does not fit its weight");
    return {};
  }
  Array rows = x.contiguous(), weight = w.contiguous();
  Array result(Kind::Float, c.resultShape());
  Eigen::Map<Matrix> y(result.data(), rows.count() / in, w.size(0));
  y.noalias() =
      ConstMap(rows.data(), y.rows(), in) * ConstMap(weight.data(), w.size(0), in).transpose();
  if (std::optional<Array> bias = c.optional("bias")) {
    Array b = bias->contiguous();
    y.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(b.data(), b.count());
  }
  return {result};
}

/// addmm, baddbmm: beta · self + alpha · a b
Results meanings::added(Call &c) {
  bool isStack = c.name() == "baddbmm";
  std::optional<Array> result =
      product(c.tensor(isStack ? "batch1" : "mat1"), c.tensor(isStack ? "batch2" : "mat2"));
  std::optional<Array> before = result ? c.tensor("self").expanded(result->shape()) : std::nullopt;
  if (!before) {
    c.fail("has matrices that do not fit");
    return {};
  }
  Array added = before->contiguous();
  double beta = c.number("beta", 1), alpha = c.number("alpha", 1);
  for (int64_t i = 0; i < result->count(); ++i)
    result->data()[i] = alpha * result->data()[i] + (beta ? beta * added.at(i) : 0);
  return {*result};
}

/// Each letter is an axis; those that the result lacks are summed over.
Results meanings::einsum(Call &c) {
  std::string equation;
  for (char letter : c.text("equation", ""))
    if (letter != ' ')
      equation += letter;
  auto [inputs, output] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef> terms;
  inputs.split(terms, ',');
  auto operands = c.tensors("tensors");
  if (equation.find("->") == std::string::npos || inputs.contains('.') ||
      terms.size() != operands.size()) {
    c.fail("has an equation without '->', or with '...', which has no meaning here");
    return {};
  }
  std::string letters = output.str();
  for (char letter : inputs)
    if (letter != ',' && letters.find(letter) == std::string::npos)
      letters += letter;
  Shape sizes(letters.size(), 1);
  for (auto [term, x] : llvm::zip(terms, operands))
    for (auto [i, letter] : llvm::enumerate(term))
      if (x && int64_t(i) < x->rank() && x->size(i) != 1)
        sizes[letters.find(letter)] = x->size(i);
  // Each operand with all letters as its axes.
  llvm::SmallVector<Array> wide;
  for (auto [term, x] : llvm::zip(terms, operands)) {
    Shape order;
    bool isOnce = x && x->rank() == int64_t(term.size());
    for (char letter : letters)
      if (size_t at = term.find(letter); at != llvm::StringRef::npos)
        order.push_back(at);
    if (!isOnce || order.size() != term.size()) {
      c.fail("has a term of another number of axes than its operand, or a letter twice");
      return {};
    }
    Array part = x->permuted(order);
    for (auto [i, letter] : llvm::enumerate(letters))
      if (!term.contains(letter))
        part = part.unsqueezed(i);
    std::optional<Array> whole = part.expanded(sizes);
    if (!whole) {
      c.fail("has operands whose shapes do not fit");
      return {};
    }
    wide.push_back(*whole);
  }
  Array result(Kind::Float, ArrayRef(sizes).take_front(output.size()));
  int64_t summed = countOf(ArrayRef(sizes).drop_front(output.size()));
  std::vector<double> products(countOf(sizes), 1);
  for (const Array &x : wide) {
    double *to = products.data();
    eachPlace(x, [&](int64_t place) { *to++ *= x.at(place); });
  }
  for (int64_t i = 0; i < result.count(); ++i)
    for (int64_t j = 0; j < summed; ++j)
      result.data()[i] += products[i * summed + j];
  return {result};
}

Results meanings::convolution(Call &c) {
  Array x = c.tensor("input"), w = c.tensor("weight").contiguous();
  if (x.rank() == 2)
    x = x.unsqueezed(0);
  if (c.has("padding") && !c.text("padding", "").empty() && c.text("padding", "") != "valid") {
    c.fail("pads by name, which has no meaning here");
    return {};
  }
  int64_t groups = c.integer("groups", 1), stride = c.integers("stride", {1})[0];
  int64_t dilation = c.integers("dilation", {1})[0];
  int64_t padding = c.text("padding", "").empty() ? c.integers("padding", {0})[0] : 0;
  Array result(Kind::Float, c.resultShape());
  if (x.rank() != 3 || w.rank() != 3 || result.rank() < 2 || groups < 1 || w.size(0) % groups ||
      x.size(1) != w.size(1) * groups) {
    c.fail("has a weight that does not fit its input");
    return {};
  }
  x = x.contiguous();
  std::optional<Array> bias = c.optional("bias");
  int64_t out = w.size(0), in = w.size(1), width = w.size(2), length = x.size(2);
  int64_t places = result.count() / std::max<int64_t>(1, x.size(0) * out);
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t o = 0; o < out; ++o)
      for (int64_t p = 0; p < places; ++p) {
        double sum = bias ? bias->contiguous().at(o) : 0;
        for (int64_t i = 0; i < in; ++i)
          for (int64_t k = 0; k < width; ++k) {
            int64_t at = p * stride + k * dilation - padding;
            int64_t channel = o / (out / groups) * in + i;
            if (at >= 0 && at < length)
              sum += w.at((o * in + i) * width + k) * x.at((n * x.size(1) + channel) * length + at);
          }
        result.data()[(n * out + o) * places + p] = sum;
      }
  return {result};
}

Results meanings::attention(Call &c) {
  Array q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value");
  if (q.rank() < 2 || k.rank() != q.rank()) {
    c.fail("has queries, keys or values of another number of axes");
    return {};
  }
  if (c.flag("enable_gqa", false) && q.rank() == 4) {
    int64_t times = q.size(1) / std::max<int64_t>(1, k.size(1));
    auto repeated = [&](const Array &x) {
      Shape wide{x.size(0), x.size(1), times, x.size(2), x.size(3)};
      return x.unsqueezed(2).expanded(wide)->viewed(
          {x.size(0), x.size(1) * times, x.size(2), x.size(3)});
    };
    k = repeated(k);
    v = repeated(v);
  }
  Shape order;
  for (int64_t i = 0; i < k.rank(); ++i)
    order.push_back(i);
  std::swap(order[k.rank() - 2], order[k.rank() - 1]);
  std::optional<Array> scores = product(q, k.permuted(order));
  std::optional<Array> mask = c.optional("attn_mask");
  std::optional<Array> wide = mask && scores ? mask->expanded(scores->shape()) : mask;
  if (!scores || (mask && !wide)) {
    c.fail("has queries, keys or a mask that do not fit");
    return {};
  }
  double scale = c.number("scale", 1 / std::sqrt(double(q.size(q.rank() - 1))));
  int64_t columns = scores->size(scores->rank() - 1), rows = scores->size(scores->rank() - 2);
  Array hidden = wide ? wide->contiguous() : Array();
  for (int64_t i = 0; i < scores->count() / std::max<int64_t>(1, columns); ++i) {
    Eigen::Map<Eigen::ArrayXd> row(scores->data() + i * columns, columns);
    row *= scale;
    for (int64_t j = 0; j < columns; ++j) {
      if (wide)
        row[j] = hidden.kind() != Kind::Bool       ? row[j] + hidden.at(i * columns + j)
                 : hidden.at(i * columns + j) != 0 ? row[j]
                                                   : -INFINITY;
      if (c.flag("is_causal", false) && j > i % rows)
        row[j] = -INFINITY;
    }
    row = (row - row.maxCoeff()).exp();
    row /= row.sum();
  }
  std::optional<Array> result = product(*scores, v);
  if (!result)
    c.fail("has values that do not fit");
  return result ? Results{*result} : Results();
}

/// python/ctxc/_recurrences.py: (batch, tokens, groups or heads, …).
Results meanings::linearAttention(Call &c) {
  Array q = c.tensor("query").contiguous(), k = c.tensor("key").contiguous(),
        v = c.tensor("value").contiguous(), d = c.tensor("decay").contiguous();
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || d.rank() < 3) {
    c.fail("has operands of another number of axes");
    return {};
  }
  std::optional<Array> given = c.optional("rates"), delta = c.optional("delta");
  Array rates = given ? given->contiguous() : Array(), b = delta ? delta->contiguous() : Array();
  const int64_t tokens = v.size(1), heads = v.size(2), V = v.size(3), groups = k.size(2),
                K = k.size(3);
  Array result(Kind::Float, v.shape());
  auto entry = [&](const Array &of, int64_t row, int64_t h, int64_t i, bool isOfRows) {
    return of.data()[(row * heads + h) * (isOfRows ? K : 1) + (isOfRows ? i : 0)];
  };
  for (int64_t batch = 0; batch < v.size(0); ++batch)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix S = Matrix::Zero(K, V);
      for (int64_t t = batch * tokens; t < (batch + 1) * tokens; ++t) {
        for (int64_t i = 0; i < K; ++i) {
          double exponent = entry(d, t, h, i, d.rank() == 4);
          S.row(i) *=
              std::exp(given ? exponent * entry(rates, 0, h, i, rates.rank() == 2) : exponent);
        }
        Eigen::Map<const Eigen::RowVectorXd> qt(q.data() + (t * groups + h * groups / heads) * K,
                                                K),
            kt(k.data() + (t * groups + h * groups / heads) * K, K),
            vt(v.data() + (t * heads + h) * V, V);
        Eigen::RowVectorXd u = vt;
        if (delta)
          u = entry(b, t, h, 0, false) * (vt - kt * S);
        S += kt.transpose() * u;
        Eigen::Map<Eigen::RowVectorXd>(result.data() + (t * heads + h) * V, V) = qt * S;
      }
    }
  return {result};
}

/// python/ctxc/_recurrences.py: (batch, tokens, channels), and (channels) for all tokens.
Results meanings::decayingMean(Call &c) {
  Array k = c.tensor("key").contiguous(), v = c.tensor("value").contiguous(),
        d = c.tensor("decay").contiguous(), own = c.tensor("own").contiguous();
  if (k.rank() != 3 || v.shape() != k.shape() || d.count() != k.size(2) ||
      own.count() != d.count()) {
    c.fail("has operands of another number of axes");
    return {};
  }
  const int64_t tokens = k.size(1), channels = k.size(2);
  Array result(Kind::Float, v.shape());
  for (int64_t i = 0; i < k.size(0) * channels; ++i) {
    const int64_t channel = i % channels, first = i / channels * tokens;
    double sum = 0, weights = 0, greatest = -INFINITY; // both over e^greatest
    for (int64_t t = first; t < first + tokens; ++t) {
      const double key = k.data()[t * channels + channel], value = v.data()[t * channels + channel];
      double here = key + own.data()[channel], top = std::max(greatest, here);
      double kept = std::exp(greatest - top), added = std::exp(here - top);
      result.data()[t * channels + channel] =
          (kept * sum + added * value) / (kept * weights + added);
      greatest += d.data()[channel];
      top = std::max(greatest, key);
      kept = std::exp(greatest - top);
      added = std::exp(key - top);
      sum = kept * sum + added * value;
      weights = kept * weights + added;
      greatest = top;
    }
  }
  return {result};
}
