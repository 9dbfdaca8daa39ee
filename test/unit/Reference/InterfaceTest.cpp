// An op of another dialect gets its semantics from outside; the interpreter does not know about it.
#include "Fixture.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ctxc::reference {
namespace {

struct NegationModel : ReferenceOpInterface::ExternalModel<NegationModel, mlir::arith::NegFOp> {
  llvm::Error evaluate(mlir::Operation *op, Evaluation &e) const {
    e.set(op->getResult(0), Matrix(-e.rows(op->getOperand(0))));
    return llvm::Error::success();
  }
};

TEST_F(ReferenceTest, OpsOfOtherDialectsJoin) {
  context.loadDialect<mlir::arith::ArithDialect>();
  const char *text = "xf.block @b(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                     "  %y = arith.negf %x : tensor<3xf32>\n"
                     "  xf.yield %y : tensor<3xf32>\n}";
  Matrix x = noise(2, 3);
  EXPECT_EQ(messageOf(run(text, {x})),
            "test.mlir:2:8: 'arith.negf' op has no meaning in the reference");
  mlir::arith::NegFOp::attachInterface<NegationModel>(context);
  EXPECT_EQ(runOne(text, {x}), -x);
}

} // namespace
} // namespace ctxc::reference
