//===- TokenKernels.h - the kernels that a token takes, in order ----------===//
//
// What an executor of one token at a time runs, and what predictions of its time sum over.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_TOKENKERNELS_H
#define CTXC_PROGRAM_TOKENKERNELS_H

#include "ctxc/Program/Program.h"

namespace ctxc {

struct TokenKernel {
  size_t step; ///< of the program
  xf::BlockOp block;
  int64_t stream; ///< whose values it reads: 0 = the run or the full run, 1 = the reduced run; a
                  ///< dual block's both
};

/// A forward step, with each patched layer's applied block where a patch is given.
llvm::SmallVector<TokenKernel> forwardKernels(const Program &program, bool isPatched,
                                              bool withHead);

/// Gives the last step, where it is not patched and reads no context, a dual block: both runs'
/// forward, in which each matrix is read once. Beside the step's block in the module; what is there
/// of an earlier call is taken.
void addDualHead(Program &program);

/// Both runs' step with patches formed from layer `startLayer` on (Algorithm 1).
llvm::SmallVector<TokenKernel> patchKernels(const Program &program, int64_t startLayer);

/// Whether `block` reads prompts, and gives more than logits.
bool readsPrompts(const Program &program, xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_PROGRAM_TOKENKERNELS_H
