#include "RandomDag.h"
#include "../Compiled/BlockText.h"
#include <map>
#include <random>

using namespace ctxc::test;

namespace {

constexpr const char *activations[] = {"gelu",    "gelu_tanh", "silu",       "relu", "relu2",
                                       "sigmoid", "tanh",      "quick_gelu", "exp",  "softplus"};

/// A block whose parameters are sometimes frozen, or used twice.
class DagText : public BlockText {
public:
  DagText(std::mt19937_64 &random, int64_t width) : BlockText("dag", width), random(random) {}

  TextValue param(const Shape &shape, const std::string &element,
                  const std::string &suffix) override {
    std::string type = typeOf(shape, element), key = type + suffix;
    auto known = names.find(key);
    bool again = known != names.end() && below(10) == 0;
    std::string name = again ? known->second : fresh("p") + suffix;
    names[key] = name;
    return op("xf.param \"" + name + "\"" + (below(8) ? "" : " frozen"), type, shape);
  }

  int64_t below(int64_t n) { return random() % n; }

private:
  std::mt19937_64 &random;
  std::map<std::string, std::string> names; ///< the last parameter of each type
};

class DagMaker {
public:
  DagMaker(uint64_t seed, bool nasty)
      : random(seed), nasty(nasty), width(2 + below(5)), hidden(2 + below(7)), b(random, width) {}

  std::string make() {
    if (below(4) == 0)
      makeGraph();
    else
      makeResidual();
    return b.text();
  }

private:
  int64_t below(int64_t n) { return random() % n; }
  bool oneIn(int64_t n) { return below(n) == 0; }
  std::string element() { return oneIn(8) ? "bf16" : "f32"; }
  const TextValue &pick(const std::vector<TextValue> &from) { return from[below(from.size())]; }
  static int64_t size(const TextValue &v) {
    int64_t n = 1;
    for (int64_t d : v.shape)
      n *= d;
    return n;
  }

  //===--------------------------------------------------------------------===//
  // Pieces
  //===--------------------------------------------------------------------===//

  TextValue act(const TextValue &x) {
    return b.unary(std::string("activation ") + activations[below(10)], x);
  }
  TextValue norm(const TextValue &x) {
    constexpr const char *kinds[] = {"rms", "rms", "rms", "l2", "layer", "layer"};
    if (x.shape.back() == 1)
      return b.unary("activation silu", x);
    return b.unary(std::string("normalize ") + kinds[below(6)], x,
                   oneIn(8) && x.shape.back() > 2 ? " eps 0.0" : " eps 1.0e-3");
  }
  TextValue scaled(const TextValue &x) { return b.scale(x, x.shape, oneIn(2), element()); }
  TextValue biased(const TextValue &x) { return b.bias(x, x.shape, element()); }
  TextValue linear(const TextValue &x, int64_t out) {
    return b.linear(x, out, element(), oneIn(4));
  }
  /// A single number computed from the whole vector.
  TextValue number(const TextValue &x) {
    return oneIn(2) ? act(b.linear(x, 1)) : b.slice(x, below(x.shape[0]), 1);
  }
  TextValue normed(const TextValue &x) {
    switch (below(6)) {
    case 0:
      return x;
    case 1:
      return norm(x);
    case 2:
      return biased(scaled(norm(x)));
    case 3:
      return biased(norm(x));
    default:
      return scaled(norm(x));
    }
  }

  TextValue contextual(const TextValue &x) {
    int64_t n = x.shape[0];
    switch (below(6)) {
    case 0: {
      std::string stored = element();
      TextValue w = b.param({n, 2 + below(2)}, stored, "");
      return b.op("xf.conv " + w.name + ", " + x.name, typeOf(w.shape, stored) + ", " + typeOf(x),
                  x.shape);
    }
    case 1: {
      TextValue gate = b.unary("activation sigmoid", oneIn(2) ? b.linear(x, n) : x);
      return b.op("xf.scan " + gate.name + ", " + x.name, typeOf(x), x.shape);
    }
    default: {
      int64_t groups = 1 + below(2), heads = groups * (1 + below(2)), each = 2 + below(2),
              out = 1 + below(3);
      auto project = [&](int64_t count, int64_t to) {
        TextValue flat = linear(x, count * to);
        return b.reshape(oneIn(4) ? biased(flat) : flat, {count, to});
      };
      TextValue q = project(heads, each), k = project(groups, each), v = project(groups, out);
      if (oneIn(2)) {
        TextValue f = b.rope(1);
        const char *style = oneIn(2) ? "half" : "interleaved";
        q = b.rotary(style, q, f);
        k = b.rotary(style, k, f);
      }
      if (oneIn(4)) // norms of queries, with one scale for all heads
        q = b.scale(norm(q), {each}, false);
      TextValue a = b.attention(q, k, v, oneIn(3) ? 2 + below(3) : 0);
      return b.reshape(a, {heads * out});
    }
    }
  }

  TextValue mixture(const TextValue &x) {
    int64_t experts = 2 + below(3), k = 1 + below(std::min<int64_t>(experts, 3));
    TextValue logits = linear(x, experts);
    if (oneIn(3))
      logits = biased(logits);
    TextValue scores = oneIn(3) ? act(logits) : b.unary("softmax", logits);
    TextValue sel = b.topK(oneIn(4) ? logits : scores, k);
    TextValue w = b.gather(scores, sel);
    if (oneIn(3))
      w = b.unary("normalize sum", w, " eps 0.0");
    if (nasty && oneIn(3))
      w = oneIn(2) ? b.unary("normalize layer", w, " eps 1.0e-3")
                   : b.sub(b.unary("softmax", w), b.unary("softmax", linear(x, k)));
    bool each = oneIn(2);
    TextValue in = oneIn(6) ? b.outer(w, x) : x;
    TextValue h = act(b.expertLinear(in, sel, experts, hidden, element(), oneIn(4), each));
    if (oneIn(2))
      h = b.mul(h, b.expertLinear(in, sel, experts, hidden, element(), false, each));
    TextValue y = b.expertLinear(h, sel, experts, x.shape[0], element(), oneIn(4), each);
    return b.combine(w, y);
  }

  TextValue mlp(const TextValue &x) {
    if (oneIn(5))
      return mixture(x);
    TextValue h = linear(x, hidden);
    if (oneIn(4))
      h = biased(h);
    h = act(h);
    if (oneIn(2))
      h = b.mul(h, linear(x, hidden));
    if (oneIn(8))
      h = scaled(norm(h));
    TextValue y = linear(h, x.shape[0]);
    return oneIn(4) ? biased(y) : y;
  }

  //===--------------------------------------------------------------------===//
  // What deceives
  // Deceptive values

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
    std::string kind = std::string("activation ") + activations[below(10)];
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
      TextValue f = b.rope(n / 2);
      return b.reshape(b.rotary("half", b.reshape(x, {1, n}), f), {n});
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

  std::mt19937_64 random;
  bool nasty;
  int64_t width, hidden;
  DagText b;
};

} // namespace

std::string ctxc::test::randomDag(uint64_t seed, bool nasty) {
  return DagMaker(seed, nasty).make();
}
