// The parts that random blocks are composed of: functions, norms, attention, mixtures, MLPs.
#ifndef CTXC_TEST_UNIT_PROPERTY_DAGPIECES_H
#define CTXC_TEST_UNIT_PROPERTY_DAGPIECES_H

#include "../Compiled/BlockText.h"
#include <cmath>
#include <map>
#include <random>

namespace ctxc::test {

constexpr const char *activations[] = {"gelu",    "gelu_tanh", "silu",       "relu", "relu2",
                                       "sigmoid", "tanh",      "quick_gelu", "exp",  "softplus"};
/// With two of them in the place of others.
constexpr const char *otherActivations[] = {"gelu",    "sqrt", "silu",       "relu", "abs",
                                            "sigmoid", "tanh", "quick_gelu", "exp",  "softplus"};

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

class DagPieces {
protected:
  DagPieces(uint64_t seed, bool nasty)
      : random(seed), nasty(nasty), hasParts(seed % 8 == 5), hasBiases(seed % 8 == 6),
        hasOrders(seed % 16 == 4), hasTaps(seed % 16 == 7), hasDirections(seed % 16 == 10),
        hasAmplitudes(seed % 16 == 14), hasKinks(nasty && seed % 16 == 1),
        functions(seed % 4 == 3 ? otherActivations : activations), width(2 + below(5)),
        hidden(2 + below(7)), b(random, width) {}

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

  TextValue act(const TextValue &x) {
    return b.unary(std::string("activation ") + functions[below(10)], x);
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

  TextValue filled(const TextValue &like, double value) {
    std::string type = typeOf(like);
    return b.op("xf.setting \"" + b.fresh("s") + "\"",
                type + " = dense<" + std::to_string(value) + "> : " + type, like.shape);
  }
  /// Zero wherever entries of x lie far on one side, which few random numbers do; or just nearly
  /// so.
  TextValue kinked(const TextValue &x) {
    double shift = oneIn(2) ? 5 : -5;
    TextValue o = b.add(x, filled(x, shift));
    auto less = [&](const TextValue &y) { return b.sub(y, filled(y, oneIn(4) ? 0.9 : 1)); };
    switch (below(7)) {
    case 0: {
      TextValue root = b.unary("activation sqrt", b.mul(o, o));
      return oneIn(2) ? b.add(root, o) : b.sub(root, o);
    }
    case 1: {
      TextValue size = b.unary("activation abs", o);
      return oneIn(2) ? b.add(size, o) : b.sub(size, o);
    }
    case 2: {
      TextValue five = filled(x, 5);
      TextValue larger = b.add(b.unary("activation relu", b.sub(x, five)), five);
      return less(oneIn(2) ? b.mul(x, b.div(filled(x, 1), larger)) : b.div(x, larger));
    }
    case 3:
      return less(b.div(o, b.unary("activation sqrt", b.mul(o, o))));
    case 4:
      return b.sub(o, b.unary("activation relu", o));
    case 5:
      return b.sub(b.unary("clamp", o, " to 3.0"), filled(o, oneIn(2) ? 3 : -3));
    default: { // the direction of a line
      TextValue one = b.add(b.linear(x, 1), filled({"", {1}}, shift));
      TextValue other = oneIn(2) ? filled(one, 0) : one;
      const char *kind = oneIn(2) ? "normalize l2" : "normalize rms";
      TextValue unit = b.slice(b.unary(kind, b.concat({one, other}), " eps 0.0"), 0, 1);
      return b.mul(x, b.sub(unit, filled(unit, other.name == one.name ? std::sqrt(0.5) : 1)));
    }
    }
  }

  TextValue turned(const TextValue &x) {
    int64_t n = x.shape[0];
    TextValue f = b.rope(hasAmplitudes && n > 3 && oneIn(2) ? 1 : n / 2);
    const char *amplitudes[] = {" amplitude 16.0", " amplitude -4.0", " amplitude 0.25", ""};
    return b.reshape(b.rotary(hasAmplitudes && oneIn(2) ? "interleaved" : "half",
                              b.reshape(x, {1, n}), f, hasAmplitudes ? amplitudes[below(4)] : ""),
                     {n});
  }

  TextValue convolution(const TextValue &x) {
    std::string stored = element();
    TextValue w = b.param({x.shape[0], 2 + below(2)}, stored, "");
    return b.op("xf.conv " + w.name + ", " + x.name, typeOf(w.shape, stored) + ", " + typeOf(x),
                x.shape);
  }

  TextValue contextual(const TextValue &x) {
    int64_t n = x.shape[0];
    switch (below(6)) {
    case 0:
      return convolution(x);
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
    if (hasBiases && oneIn(2))
      y = b.add(y, b.gather(b.param({experts, x.shape[0]}, "f32", ""), sel));
    return b.combine(w, y);
  }

  /// A matrix for each of two groups, or a slice of one.
  TextValue inParts(const TextValue &h, int64_t out) {
    if (oneIn(3))
      return b.slice(linear(h, out + 2), below(3), out);
    int64_t n = h.shape[0], cut = 1 + below(n - 1), part = 1 + below(out - 1);
    TextValue low = linear(b.slice(h, 0, cut), part);
    TextValue high = linear(b.slice(h, cut, n - cut), out - part);
    return oneIn(3) ? b.concat({scaled(low), high}) : b.concat({low, high});
  }

  /// The entries of a vector in another order; or, once in a while, some of them twice.
  /// A number, mostly one that a patch may change, times a norm.
  TextValue directed(const TextValue &x, const TextValue &y) {
    TextValue d = oneIn(4) ? x : linear(x, x.shape[0]), n = norm(d);
    TextValue g = oneIn(3) ? number(y) : b.linear(oneIn(4) ? d : y, 1);
    if (oneIn(4))
      g = b.bias(g, g.shape, element());
    return b.mul(n, g);
  }
  TextValue reordered(const TextValue &x) {
    int64_t n = x.shape[0];
    if (n < 2)
      return x;
    int64_t cut = 1 + below(n - 1);
    switch (below(5)) {
    case 0:
      return b.permute(x, {cut, n - cut}, {1, 0});
    case 1: { // single entries, the first two of which change places
      Shape order{1, 0}, ones(n, 1);
      for (int64_t i = 2; i < n; ++i)
        order.push_back(i);
      return b.permute(x, ones, order);
    }
    case 2: {
      int64_t from = oneIn(3) ? below(n - cut + 1) : 0;
      TextValue low = b.slice(x, from, cut), high = b.slice(x, cut, n - cut);
      return oneIn(4) ? b.concat({low, high}) : b.concat({high, low});
    }
    default: {
      int64_t rows = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 1;
      TextValue y = b.transpose(b.reshape(x, {rows, n / rows}), {1, 0});
      if (rows > 1 && oneIn(3))
        y = b.permute(y, {1, rows - 1}, {1, 0}, 1);
      return b.reshape(y, {n});
    }
    }
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
    bool isWhole = !hasParts || x.shape[0] == 1 || oneIn(3);
    TextValue y = isWhole ? linear(h, x.shape[0]) : inParts(h, x.shape[0]);
    return oneIn(4) ? biased(y) : y;
  }

  std::mt19937_64 random;
  bool nasty, hasParts;         ///< outer matrices in groups, or wider than what is read of them
  bool hasBiases;               ///< of the experts that are selected
  bool hasOrders;               ///< entries in another order
  bool hasTaps;                 ///< convolutions behind MLPs
  bool hasDirections;           ///< numbers times norms
  bool hasAmplitudes;           ///< rotations that make longer or shorter, also of some pairs alone
  bool hasKinks;                ///< functions that are zero on an open set far from where most are
  const char *const *functions; ///< ten activations
  int64_t width, hidden;
  DagText b;
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_DAGPIECES_H
