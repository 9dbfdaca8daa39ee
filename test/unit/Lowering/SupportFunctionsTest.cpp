// What kernel.call says of the functions that it calls, and what their C types say.
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace mlir;

namespace {

struct SupportFunctions : testing::Test {
  SupportFunctions() { context.loadDialect<kernel::KernelDialect, func::FuncDialect>(); }
  MLIRContext context;
};

/// An obligation's counts are added to; what is counted is only read.
TEST_F(SupportFunctions, CallsWriteWhatTheirFunctionsDoNotDeclareConst) {
  auto module = parseSourceString<ModuleOp>(R"(
    func.func @count(%a: memref<?x3xi32>, %b: memref<?x3xi32>, %counts: memref<?x2xi64>) {
      kernel.call @ctxc_rows_count_different [1, 3] (%a, %b, %counts)
          : memref<?x3xi32>, memref<?x3xi32>, memref<?x2xi64>
      return
    })",
                                            &context);
  ASSERT_TRUE(module);
  kernel::CallOp call;
  module->walk([&](kernel::CallOp op) { call = op; });
  auto effectsOn = [&](unsigned i) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(call.getOperation())
        .getEffectsOnValue(call.getMemory()[i], effects);
    std::string names;
    for (const MemoryEffects::EffectInstance &each : effects)
      names += isa<MemoryEffects::Write>(each.getEffect()) ? 'w' : 'r';
    return names;
  };
  EXPECT_EQ(effectsOn(0), "r");
  EXPECT_EQ(effectsOn(1), "r");
  EXPECT_EQ(effectsOn(2), "rw");
}

TEST_F(SupportFunctions, SignaturesAreTheDeclaredOnes) {
  kernel::Signature row = kernel::signatureOf(kernel::SupportFunction::ctxc_scaled_row, &context);
  EXPECT_EQ(row.name, "ctxc_scaled_row");
  EXPECT_TRUE(row.returnsAddress);
  EXPECT_FALSE(row.isOfRows);
  kernel::Signature invert =
      kernel::signatureOf(kernel::SupportFunction::ctxc_rows_invert_rms_norm, &context);
  EXPECT_FALSE(invert.returnsAddress);
  EXPECT_TRUE(invert.isOfRows);
  EXPECT_EQ(invert.numbers().size(), 4u);
  EXPECT_TRUE(invert.numbers()[3].type.isF32()); // ε
  ASSERT_EQ(invert.memory().size(), 5u);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(invert.memory()[i].isShared, i == 1) << i; // one m
    EXPECT_EQ(invert.memory()[i].isWritten, i > 2) << i; // target and scratch
  }
  EXPECT_TRUE(invert.memory()[4].type.isF64());
  EXPECT_EQ(kernel::supportFunctionOf("ctxc_rows_invert"), std::nullopt);
}

} // namespace
