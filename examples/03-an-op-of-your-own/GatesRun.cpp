// What the two backends ask of the ops: the reference computes them in float64 (one row a token),
// the lowering emits them as linalg, in float32.
#include "Gates.h"
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gates;
using namespace ctxc;
using reference::Evaluation;
using reference::Matrix;

//===----------------------------------------------------------------------===//
// gates.mix
//===----------------------------------------------------------------------===//

llvm::Error MixOp::evaluate(Evaluation &e) {
  auto s = e.rows(getGate()).array(), a = e.rows(getLhs()).array(), b = e.rows(getRhs()).array();
  e.set(getResult(), Matrix(b + (a - b) / (1 + (-s).exp())));
  return llvm::Error::success();
}

LogicalResult MixOp::lowerToLinalg(KernelEmitter &e) {
  e.bind(getResult(),
         e.elementwise(getResult(), getOperands(), [](OpBuilder &b, Location l, ValueRange v) {
           Value one = constant(b, l, 1);
           Value negated = arith::NegFOp::create(b, l, v[0]);
           Value divisor = add(b, l, one, math::ExpOp::create(b, l, negated));
           return add(b, l, v[2], div(b, l, sub(b, l, v[1], v[2]), divisor));
         }));
  return success();
}

//===----------------------------------------------------------------------===//
// gates.softsign
//===----------------------------------------------------------------------===//

llvm::Error SoftsignOp::evaluate(Evaluation &e) {
  auto x = e.rows(getData()).array();
  e.set(getResult(), Matrix(x / (1 + x.abs())));
  return llvm::Error::success();
}

LogicalResult SoftsignOp::lowerToLinalg(KernelEmitter &e) {
  e.bind(getResult(),
         e.elementwise(getResult(), {getData()}, [](OpBuilder &b, Location l, ValueRange v) {
           Value size = math::AbsFOp::create(b, l, v[0]);
           return div(b, l, v[0], add(b, l, constant(b, l, 1), size));
         }));
  return success();
}

//===----------------------------------------------------------------------===//
// gates.shift
//===----------------------------------------------------------------------===//

// A parameter is one row for all tokens as it is stored, and a row for each under a patch.
llvm::Error ShiftOp::evaluate(Evaluation &e) {
  Matrix y = e.rows(getData()), b = getRate().convertToDouble() * e.widened(getBias());
  if (e.isShared(getBias()))
    y.rowwise() += b.row(0);
  else
    y += b;
  e.set(getResult(), std::move(y));
  return llvm::Error::success();
}

LogicalResult ShiftOp::lowerToLinalg(KernelEmitter &e) {
  double rate = getRate().convertToDouble();
  e.bind(getResult(), e.elementwise(getResult(), {getData(), getBias()},
                                    [rate](OpBuilder &b, Location l, ValueRange v) {
                                      return add(b, l, v[0], mul(b, l, constant(b, l, rate), v[1]));
                                    }));
  return success();
}

//===----------------------------------------------------------------------===//
// math.sin: an op of someone else, with interfaces attached from outside
//===----------------------------------------------------------------------===//

namespace {

struct SinFacts : xf::FactsOpInterface::ExternalModel<SinFacts, math::SinOp> {
  xf::Facts inferFacts(Operation *, ArrayRef<xf::Facts> operands) const {
    xf::Facts facts = operands[0];
    // Zero at the multiples of π, which is a null set.
    facts.elements = std::max(xf::Zeros::NullSet, facts.elements);
    facts.vector = std::max(xf::Zeros::NullSet, facts.vector);
    facts.bound = 1.0;
    facts.length.reset();
    facts.floor.reset();
    facts.ceiling.reset();
    return facts;
  }
};

struct EvaluateSin : reference::ReferenceOpInterface::ExternalModel<EvaluateSin, math::SinOp> {
  llvm::Error evaluate(Operation *op, Evaluation &e) const {
    e.set(op->getResult(0), Matrix(e.rows(op->getOperand(0)).array().sin()));
    return llvm::Error::success();
  }
};

struct LowerSin : LinalgLoweringOpInterface::ExternalModel<LowerSin, math::SinOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.elementwise(op->getResult(0), op->getOperands(),
                                           [](OpBuilder &b, Location l, ValueRange v) -> Value {
                                             return math::SinOp::create(b, l, v[0]);
                                           }));
    return success();
  }
};

} // namespace

void gates::registerSinModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    math::SinOp::attachInterface<SinFacts, EvaluateSin, LowerSin>(*context);
  });
}
