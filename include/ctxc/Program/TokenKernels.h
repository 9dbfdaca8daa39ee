//===- TokenKernels.h - the kernels that a token takes, in order ----------===//
//
// The kernels that an executor runs for one token; predictions of its time sum over them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_TOKENKERNELS_H
#define CTXC_PROGRAM_TOKENKERNELS_H

#include "ctxc/Program/Program.h"

namespace ctxc {

struct TokenKernel {
  size_t step; ///< of the program
  xf::BlockOp block;
  int64_t run; ///< the run that it reads: 0 = the only run or the full run, 1 = the reduced run;
               ///< a dual block reads both
};

/// The kernels of a forward step, with each patched layer's applied block if a patch is given.
llvm::SmallVector<TokenKernel> forwardKernels(const Program &program, bool isPatched,
                                              bool withHead);

/// If the last step is not patched and reads no context, gives it a dual block that computes both
/// runs and reads each matrix once. The dual block stands beside the step's block in the
/// module; one from an earlier call is reused.
void addDualHead(Program &program);

/// The kernels of a step of both runs, with patches from layer `startLayer` on (Algorithm 1).
llvm::SmallVector<TokenKernel> patchKernels(const Program &program, int64_t startLayer);

/// Whether `block` runs in a prefill: it does more than compute logits.
bool readsPrompts(const Program &program, xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_PROGRAM_TOKENKERNELS_H
