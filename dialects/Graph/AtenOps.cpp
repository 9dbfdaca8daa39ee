#include "dialects/Graph/AtenOps.h"
#include "dialects/XF/Functions.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::graph;
using xf::functions::relu;
using xf::functions::sigmoid;
using xf::functions::softplus;

static double inverseErf(double y) {
  if (!(std::abs(y) < 1))
    return std::abs(y) == 1 ? std::copysign(INFINITY, y) : NAN;
  // Winitzki's estimate, made exact by Newton's steps.
  double a = 0.147, l = std::log1p(-y * y), t = 2 / (M_PI * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), y);
  for (int step = 0; step < 4; ++step)
    x -= (std::erf(x) - y) * std::sqrt(M_PI) / 2 * std::exp(x * x);
  return x;
}

static double modulo(double x, double y) { return x - std::floor(x / y) * y; }

static constexpr bool generic = true, special = false;

static constexpr AtenOp ops[] = {
#define ATEN(name, kind, tokens, meaning, raised, followed, generic)                               \
  {name, AtenKind::kind, generic},
#define ATEN_FUNCTION(name, raised, followed, generic, formula)                                    \
  {name, AtenKind::Entries, generic, [](double x) -> double { return formula; }},
#define ATEN_OF_TWO(name, raised, followed, generic, formula)                                      \
  {name, AtenKind::Entries, generic, nullptr, [](double x, double y) -> double { return formula; }},
#include "dialects/Graph/AtenOps.def"
};

const AtenOp *graph::atenOp(llvm::StringRef name) {
  static const llvm::StringMap<const AtenOp *> byName = [] {
    llvm::StringMap<const AtenOp *> made;
    for (const AtenOp &op : ops)
      made[op.name] = &op;
    return made;
  }();
  return byName.lookup(name);
}

const AtenOp *graph::atenOp(CallOp call) {
  return call.getTarget().starts_with("aten.") ? atenOp(call.getBaseName()) : nullptr;
}
