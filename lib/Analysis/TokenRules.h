// What each op of PyTorch does with the tokens of its operands.
#ifndef CTXC_LIB_ANALYSIS_TOKENRULES_H
#define CTXC_LIB_ANALYSIS_TOKENRULES_H

#include "ctxc/Analysis/TokenAxes.h"

namespace ctxc {

/// What a rule may ask of a call, all of whose data operands and results have one axis of tokens.
struct TokenCall {
  mutable graph::CallOp call; // whose accessors are not const
  const TokenAxes &axes;

  graph::SymbolicType type(mlir::Value value) const {
    return mlir::cast<graph::SymbolicType>(value.getType());
  }
  /// The tokens' axis in the tensor `name`; none where it is not data.
  std::optional<int64_t> tokenAxis(llvm::StringRef name) const;
  /// The axis that argument `name` says, counted from the front; `otherwise` where it is not given.
  /// None where it is no axis of `rank`.
  std::optional<int64_t> dim(llvm::StringRef name, int64_t rank, int64_t otherwise) const;
};

/// `None` or `Tokens` by the op's rule; `Unknown` where it has none.
Mixing ruleFor(const TokenCall &call);

} // namespace ctxc

#endif // CTXC_LIB_ANALYSIS_TOKENRULES_H
