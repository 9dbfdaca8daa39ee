#include "dialects/XF/Arithmetic.h"
#include "mlir/IR/BuiltinOps.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

static double roundoffOf(FloatType type) {
  return std::ldexp(1.0, -int(type.getFPMantissaWidth()));
}

double xf::roundoffOfOps(Operation *scope) {
  double coarsest = roundoffOf(Float32Type::get(scope->getContext()));
  scope->walk([&](RoundOp op) {
    bool isWide = op.getNarrow() == NarrowType::bf16;
    FloatType type = isWide ? FloatType(BFloat16Type::get(op.getContext()))
                            : FloatType(Float16Type::get(op.getContext()));
    coarsest = std::max(coarsest, roundoffOf(type));
  });
  return coarsest;
}

double xf::roundoffOfProgram(Operation *scope) {
  double coarsest = roundoffOfOps(scope);
  auto module = isa<ModuleOp>(scope) ? cast<ModuleOp>(scope) : scope->getParentOfType<ModuleOp>();
  auto named = module ? module->getAttrOfType<TypeAttr>(arithmeticName) : TypeAttr();
  if (auto type = named ? dyn_cast<FloatType>(named.getValue()) : FloatType())
    coarsest = std::max(coarsest, roundoffOf(type));
  return coarsest;
}
