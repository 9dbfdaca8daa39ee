// One linear layer, compiled as in a model.
#ifndef CTXC_LIB_RUNTIME_TUNE_LINEARKERNEL_H
#define CTXC_LIB_RUNTIME_TUNE_LINEARKERNEL_H

#include "ctxc/Lowering/Codegen.h"
#include "lib/Runtime/Workspace.h"
#include "mlir/IR/MLIRContext.h"

namespace ctxc {

/// y = W x as an xf.block that is a single xf.linear: the generated code of every projection of a
/// model, called as the executor calls it.
class LinearKernel {
public:
  /// W is `outputs` × `inputs`, of type `element` ("f32", "!xf.quantized<q8_0>"). Many
  /// rows are multiplied as those of a prompt. Fails where the block
  /// cannot be compiled. The target is one whose code this process runs.
  static llvm::Expected<std::unique_ptr<LinearKernel>>
  compile(int64_t outputs, int64_t inputs, llvm::StringRef element,
          PromptProducts prompts = PromptProducts::Exact,
          const CpuTarget &target = CpuTarget::host());

  /// Y = X Wᵀ for X of `rows` × inputs, on `threads` threads.
  void run(const void *weight, const float *x, float *y, int64_t rows, int threads);

private:
  LinearKernel() = default;

  mlir::MLIRContext context;
  llvm::SmallVector<KernelArg> arguments;
  std::unique_ptr<KernelLibrary> library;
  KernelLibrary::Kernel kernel = nullptr;
  KernelLibrary::Workspace workspaceOf = nullptr;
  Workspace workspace;
  std::vector<int32_t> positions;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_TUNE_LINEARKERNEL_H
