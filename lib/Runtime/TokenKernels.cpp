#include "ctxc/Runtime/TokenKernels.h"

using namespace ctxc;

llvm::SmallVector<TokenKernel> ctxc::forwardKernels(const Program &program, bool isPatched,
                                                    bool withHead) {
  llvm::SmallVector<TokenKernel> kernels;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!withHead && program.head() == i)
      break;
    kernels.push_back({i, isPatched && step.applied ? step.applied : step.block, 0});
  }
  return kernels;
}

llvm::SmallVector<TokenKernel> ctxc::patchKernels(const Program &program, int64_t startLayer) {
  llvm::SmallVector<TokenKernel> kernels;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (step.dual && *step.index >= startLayer) {
      kernels.push_back({i, step.dual, 0});
      continue;
    }
    for (int64_t stream : {0, 1})
      kernels.push_back({i, step.block, stream});
  }
  return kernels;
}
