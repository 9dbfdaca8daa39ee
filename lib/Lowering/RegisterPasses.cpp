// The lowering as passes of ctxc-opt.
#include "ctxc/Lowering/RegisterPasses.h"
#include "ctxc/Lowering/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace ctxc;

namespace {

struct LowerToLinalgPass : PassWrapper<LowerToLinalgPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLinalgPass)
  StringRef getArgument() const override { return "ctxc-lower-to-linalg"; }
  StringRef getDescription() const override {
    return "turn every block into a kernel in linalg, and drop blocks and models";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, bufferization::BufferizationDialect, func::FuncDialect,
                    linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                    memref::MemRefDialect, tensor::TensorDialect>();
  }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto model : llvm::to_vector(module.getOps<xf::ModelOp>()))
      model.erase();
    for (auto block : llvm::to_vector(module.getOps<xf::BlockOp>())) {
      std::string name = block.getSymName().str();
      block.setSymName(name + ".block");
      if (failed(lowerBlockToLinalg(block, module, name)))
        return signalPassFailure();
      block.erase();
    }
  }
};

struct LowerToLLVMPass : PassWrapper<LowerToLLVMPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLLVMPass)
  LowerToLLVMPass() = default;
  LowerToLLVMPass(const LowerToLLVMPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "ctxc-lower-to-llvm"; }
  StringRef getDescription() const override {
    return "lower kernels from linalg to the LLVM dialect";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<scf::SCFDialect, LLVM::LLVMDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    CpuTarget target;
    target.lanes = lanes;
    target.registers = registers;
    if (failed(lowerKernelsToLLVM(getOperation(), target)))
      signalPassFailure();
  }
  Option<int64_t> lanes{*this, "lanes", llvm::cl::desc("float32 lanes of a vector register"),
                        llvm::cl::init(16)};
  Option<int64_t> registers{*this, "registers", llvm::cl::desc("vector registers"),
                            llvm::cl::init(32)};
};

} // namespace

void ctxc::registerLoweringPasses() {
  PassRegistration<LowerToLinalgPass>();
  PassRegistration<LowerToLLVMPass>();
}
