#include "RandomSized.h"
#include "../Compiled/BlockText.h"
#include <cmath>
#include <random>

using namespace ctxc::test;

namespace {

class SizedMaker {
public:
  explicit SizedMaker(uint64_t seed)
      : random(seed), width(std::array<int64_t, 4>{512, 600, 768, 1024}[below(4)]),
        b("sized", width) {}
  std::string make();

private:
  int64_t below(int64_t n) { return random() % n; }
  bool oneIn(int64_t n) { return below(n) == 0; }
  TextValue number(double value) {
    return b.op("xf.setting \"" + b.fresh("s") + "\"",
                "tensor<1xf32> = dense<" + text(value) + "> : tensor<1xf32>", {1});
  }
  static std::string text(double value) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17e", value);
    return buffer;
  }
  TextValue times(const TextValue &x, double by) { return b.unary("times", x, " by " + text(by)); }
  TextValue sumOfProducts(const TextValue &x, const TextValue &y);
  TextValue one(const TextValue &of);
  TextValue factor(const TextValue &of);

  std::mt19937_64 random;
  int64_t width;
  BlockText b;
};

TextValue SizedMaker::sumOfProducts(const TextValue &x, const TextValue &y) {
  TextValue rows = b.reshape(y, {y.shape[0], 1});
  return b.op("xf.combine " + x.name + ", " + rows.name, typeOf(x) + ", " + typeOf(rows), {1});
}

/// A number that is 1 at this size, now and then but nearly so.
TextValue SizedMaker::one(const TextValue &given) {
  TextValue of = oneIn(3) ? b.slice(given, 0, given.shape[0] / 2) : given;
  double n = of.shape[0];
  const char *kinds[] = {"normalize rms", "normalize layer"};
  if (oneIn(4)) {
    TextValue unit = b.unary("normalize l2", of, " eps 0.0");
    return sumOfProducts(unit, unit);
  }
  TextValue x = b.unary(kinds[below(2)], of, " eps 0.0");
  double by = oneIn(5) ? 1 / (n + 1) : 1 / n;
  switch (below(3)) {
  case 0:
    x = times(x, std::sqrt(by));
    return sumOfProducts(x, x);
  case 1:
    return times(times(sumOfProducts(x, x), by * 64), 1.0 / 64);
  default:
    return times(sumOfProducts(x, x), by);
  }
}

TextValue SizedMaker::factor(const TextValue &of) {
  TextValue less = b.sub(one(of), number(1));
  return oneIn(4) ? b.add(less, number(0.25)) : less;
}

std::string SizedMaker::make() {
  TextValue x = b.input();
  auto conv = [&](const TextValue &of) {
    TextValue k = b.param({width, 3});
    return b.op("xf.conv " + k.name + ", " + of.name, typeOf(k) + ", " + typeOf(of), of.shape);
  };
  TextValue context = conv(x);
  if (oneIn(3))
    context = b.mul(context, factor(x));
  if (oneIn(4))
    context = b.add(context, times(b.unary("activation tanh", conv(x)), 0.01));
  TextValue v = b.add(x, context), h = v;
  if (oneIn(2))
    h = b.unary("activation gelu", b.linear(v, width));
  if (oneIn(4))
    h = b.mul(h, factor(oneIn(2) ? x : v));
  TextValue y = b.linear(h, width);
  if (oneIn(2))
    y = b.mul(y, factor(oneIn(2) ? x : v));
  if (oneIn(3))
    y = oneIn(2) ? b.unary("softcap", y, " at 3.0") : b.unary("normalize rms", y, " eps 1.0e-3");
  b.output(b.add(v, y));
  return b.text();
}

} // namespace

std::string ctxc::test::randomSized(uint64_t seed) { return SizedMaker(seed).make(); }
