//===- RunFunction.h - a part of a PyTorch program, computed ---------------===//
#ifndef CTXC_REFERENCE_RUNFUNCTION_H
#define CTXC_REFERENCE_RUNFUNCTION_H

#include "ctxc/Reference/State.h"
#include "llvm/Support/Error.h"

namespace ctxc::graph {
class FunctionOp;
}

namespace ctxc::reference {

/// The result of `function` for tokens at `positions`, in float64: a row for each token, or one row
/// if the result has no axis of tokens. An operand also has a row for each token, or one. Errors
/// name the call that has no meaning here, or that fails.
llvm::Expected<Matrix> runFunction(graph::FunctionOp function, llvm::ArrayRef<int64_t> positions,
                                   llvm::ArrayRef<Matrix> operands);

} // namespace ctxc::reference

#endif // CTXC_REFERENCE_RUNFUNCTION_H
