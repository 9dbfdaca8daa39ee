#include "RandomDag.h"
#include "DagPieces.h"

using namespace ctxc::test;

namespace {

class DagMaker : DagPieces {
public:
  DagMaker(uint64_t seed, bool nasty) : DagPieces(seed, nasty) {}

  std::string make() {
    if (below(4) == 0)
      makeGraph();
    else
      makeResidual();
    return b.text();
  }

private:
  //===--------------------------------------------------------------------===//
  // Deceptive values
  //===--------------------------------------------------------------------===//

  TextValue constant(const Shape &shape) {
    std::string type = typeOf(shape), numbers;
    int64_t n = size({"", shape});
    switch (below(4)) {
    case 0:
      numbers = "0.0";
      break;
    case 1:
      numbers = "1.0";
      break;
    default: // nested as the shape requires
      if (shape.size() != 1) {
        numbers = "-0.5";
        break;
      }
      numbers = "[";
      for (int64_t i = 0; i < n; ++i)
        numbers += (i ? ", " : "") + std::to_string(below(5) - 2) + ".0";
      numbers += "]";
    }
    return b.op("xf.setting \"" + b.fresh("s") + "\"", type + " = dense<" + numbers + "> : " + type,
                shape);
  }
  TextValue negated(const TextValue &x) { return b.unary("times", x, " by -1.0"); }
  TextValue withParameter(const char *op, const char *link, const TextValue &x,
                          const TextValue &parameter, const char *more = "") {
    return b.op(std::string(op) + " " + x.name + link + parameter.name + more,
                typeOf(x) + ", " + typeOf(parameter), x.shape);
  }
  /// Reshapes to rows of one entry.
  TextValue inOnes(const TextValue &x) {
    constexpr const char *ops[] = {"normalize layer", "normalize sum", "softmax", "normalize rms"};
    int64_t kind = below(4), n = x.shape[0];
    TextValue rows = b.reshape(x, {n, 1});
    rows = b.unary(ops[kind], rows, kind == 2 ? "" : oneIn(2) ? " eps 0.0" : " eps 1.0e-3");
    return b.reshape(rows, {n});
  }

  /// A vector of x's size that may be zero, or equal to another, although it does not look so.
  TextValue deceive(const TextValue &x, const std::vector<TextValue> &pool) {
    int64_t n = x.shape[0];
    const TextValue &other = pick(pool);
    TextValue y = other.shape == x.shape ? other : linear(other, n);
    std::string kind = std::string("activation ") + functions[below(10)];
    switch (below(14)) {
    case 0:
      return b.mul(x, constant({n}));
    case 1:
      return b.add(x, constant({n}));
    case 2:
      return b.sub(x, b.unary(kind, x));
    case 3:
      return b.sub(b.unary(kind, x), b.unary(kind, oneIn(2) ? x : y));
    case 4:
      return b.sub(x, b.unary("clamp", oneIn(2) ? x : y, oneIn(2) ? " to 2.0" : " to 2.0 above"));
    case 5: {
      TextValue one = inOnes(x);
      return oneIn(2) ? one : b.sub(one, constant({n}));
    }
    case 6: {
      TextValue m = constant({n, n});
      TextValue centred = oneIn(2) && n > 1 ? b.unary("normalize layer", x, " eps 1.0e-3") : x;
      return b.op("xf.linear " + m.name + " * " + centred.name, typeOf(m) + ", " + typeOf(centred),
                  {n});
    }
    case 7:
      return b.sub(b.sub(b.add(x, y), oneIn(2) ? x : y), oneIn(2) ? x : y);
    case 8:
      return withParameter("xf.scale", " by ", x, oneIn(2) ? constant({n}) : y, " offset -1.0");
    case 9:
      return withParameter("xf.bias", " + ", x, oneIn(2) ? negated(x) : y);
    case 10:
      return b.mul(y, b.unary("activation relu", negated(b.unary("activation exp", x))));
    case 11: {
      TextValue q = b.reshape(x, {1, n});
      return b.reshape(b.attention(q, q, q, 1), {n});
    }
    case 12: { // the same matrix twice
      TextValue w = b.param({n, n}, "f32", "");
      auto times = [&](const TextValue &v) {
        return b.op("xf.linear " + w.name + " * " + v.name, typeOf(w) + ", " + typeOf(v), {n});
      };
      return b.sub(times(x), times(oneIn(2) ? x : y));
    }
    default:
      return b.mul(x, b.sub(b.unary("activation tanh", y), b.unary(kind, y)));
    }
  }

  /// A vector of x's size computed from x, in one of many ways.
  TextValue step(const TextValue &x, const std::vector<TextValue> &pool) {
    int64_t n = x.shape[0];
    if (nasty && oneIn(4))
      return deceive(x, pool);
    if (hasDirections && oneIn(3))
      return directed(x, pick(pool));
    if (hasOrders && oneIn(3))
      return reordered(x);
    if (hasKinks && oneIn(3))
      return kinked(x);
    if (hasAmplitudes && n % 2 == 0 && oneIn(3))
      return turned(oneIn(2) ? norm(x) : x);
    switch (below(16)) {
    case 0:
      return biased(x);
    case 1:
      return scaled(x);
    case 2:
      return act(x);
    case 3:
      return norm(x);
    case 4:
      return b.unary("softcap", x, " at 3.0");
    case 5:
      return b.unary(n > 1 ? "softmax" : "activation softplus", x);
    case 6:
      return b.unary("times", x, std::array{" by 0.5", " by -2.0"}[below(2)]);
    case 7:
      return linear(x, n);
    case 8:
      return b.mul(x, number(pick(pool)));
    case 9: { // concatenated, and sliced apart again
      if (n < 2)
        return biased(x);
      int64_t cut = 1 + below(n - 1);
      TextValue low = b.slice(x, 0, cut), high = b.slice(x, cut, n - cut);
      TextValue &part = oneIn(2) ? low : high;
      part = oneIn(2) ? biased(part) : act(part);
      return oneIn(2) ? b.concat({low, high}) : b.concat({high, low});
    }
    case 10: { // one vector for each of several
      if (n % 2)
        return scaled(norm(x));
      TextValue rows = b.reshape(x, {2, n / 2});
      rows = oneIn(2) ? b.scale(norm(rows), {n / 2}, false) : b.linear(rows, n / 2);
      return b.reshape(rows, {n});
    }
    case 11:
      return scaled(norm(x));
    case 12: {
      if (n % 2)
        return x;
      return turned(x);
    }
    default: {
      const TextValue &y = pick(pool);
      TextValue other = y.shape == x.shape && y.name != x.name ? y : linear(y, n);
      switch (below(5)) {
      case 0:
        return b.add(x, other);
      case 1:
        return b.sub(x, other);
      case 2:
        return b.mul(x, other);
      case 3:
        return b.mul(act(other), x);
      default:
        return b.div(x, oneIn(2) ? b.unary("activation exp", other) : other);
      }
    }
    }
  }

  //===--------------------------------------------------------------------===//
  // Blocks
  //===--------------------------------------------------------------------===//

  /// Leads back to a residual stream: nothing, or an op that may break the chain.
  TextValue ending(TextValue y, const std::vector<TextValue> &pool) {
    if (y.shape[0] != width || oneIn(3))
      y = linear(y, width);
    for (int64_t i = below(3) * below(2); i > 0; --i)
      y = step(y, pool);
    if (hasTaps && oneIn(2))
      y = convolution(y);
    if (oneIn(3))
      y = scaled(norm(y));
    return y;
  }
  TextValue join(const TextValue &stream, const TextValue &branch) {
    if (oneIn(12))
      return b.sub(stream, branch);
    if (oneIn(12)) // gated
      return b.add(stream, b.mul(branch, number(branch)));
    return oneIn(4) ? b.add(branch, stream) : b.add(stream, branch);
  }

  void makeResidual() {
    std::vector<TextValue> streams{b.input()}, pool;
    if (oneIn(5))
      streams.push_back(b.input(Shape{width}));
    pool = streams;
    bool parallel = oneIn(5);
    int64_t layers = 2 + below(5) / 3, first = below(8) ? 0 : 1;
    TextValue shared = normed(streams[0]);
    for (int64_t l = 0; l < layers; ++l) {
      TextValue &stream = streams[below(streams.size())];
      TextValue x = parallel && oneIn(2) ? shared : normed(parallel ? b.input() : pick(streams));
      TextValue y = l == first || oneIn(5) ? contextual(x) : mlp(x);
      pool.push_back(y.shape[0] == width ? y : x);
      stream = join(stream, ending(y, pool));
      if (oneIn(10))
        stream = step(stream, pool);
    }
    for (TextValue &stream : streams)
      if (streams.size() == 1 || below(5))
        b.output(oneIn(10) ? scaled(norm(stream)) : stream);
    if (b.getOutputs().empty() || oneIn(12))
      b.output(oneIn(2) ? pick(pool) : streams[0]);
  }

  void makeGraph() {
    std::vector<TextValue> pool{b.input()};
    for (int64_t i = below(3); i > 0; --i)
      pool.push_back(b.input(Shape{oneIn(2) ? width : 1 + below(5)}));
    pool.push_back(contextual(pick(pool)));
    for (int64_t i = 2 + below(8); i > 0; --i) {
      const TextValue x = pool[oneIn(2) ? pool.size() - 1 : below(pool.size())];
      switch (below(12)) {
      case 0:
        pool.push_back(contextual(x));
        break;
      case 1:
        pool.push_back(mlp(x));
        break;
      case 2:
        pool.push_back(linear(x, 1 + below(5)));
        break;
      case 3:
        pool.push_back(b.concat({x, pick(pool)}));
        break;
      case 4:
        pool.push_back(b.slice(x, below(x.shape[0]), 1));
        break;
      default:
        pool.push_back(step(x, pool));
      }
    }
    b.output(pool.back());
    for (int64_t i = below(4) / 2; i > 0; --i)
      b.output(pick(pool));
  }
};

} // namespace

std::string ctxc::test::randomDag(uint64_t seed, bool nasty) {
  return DagMaker(seed, nasty).make();
}
