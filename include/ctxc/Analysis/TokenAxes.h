//===- TokenAxes.h - which ops of a program mix tokens ---------------------===//
//
// Each value of a graph.program belongs to one token at a time, or to several:
//
//            Whole        of several tokens, or of none that is known
//          /       \.
//    Token(axis)    Fixed       one axis is the tokens'; the same for every context
//
// A value is Fixed where it does not depend on what the model reads: parameters, buffers,
// positions, and whatever is computed from them alone. A value is Token where, along one axis,
// entry i depends on token i alone. Any other is Whole. What each op does is in TokenRules.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_TOKENAXES_H
#define CTXC_ANALYSIS_TOKENAXES_H

#include "dialects/Graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

/// What an op does with the tokens of its operands.
enum class Mixing {
  None,    ///< result i reads entry i of each operand alone
  Tokens,  ///< it joins tokens
  Unknown, ///< no rule says; it counts as joining them
};

class TokenAxes {
public:
  explicit TokenAxes(graph::ProgramOp program);

  /// Whether the value depends on what the model reads.
  bool isData(mlir::Value value) const { return data.contains(value); }
  /// Whether the call's results have the sizes and types of an operand, and nothing of its numbers.
  static bool ignoresNumbers(graph::CallOp call);
  /// How `call` treats the tokens of its data; None where it reads no data.
  Mixing mixing(graph::CallOp call) const { return calls.lookup(call).first; }
  /// Why, in words; empty where it reads no data.
  llvm::StringRef reason(graph::CallOp call) const;

  /// The one axis of the tokens in `type`; none where no axis is as long as they are many, or
  /// several are, or one has a size that is made of their number.
  std::optional<unsigned> axis(graph::SymbolicType type) const;
  std::optional<unsigned> axis(mlir::Value value) const;
  /// How many axes have to do with the number of tokens.
  unsigned countAxes(mlir::Value value) const;
  /// The size of the tokens' axis.
  mlir::Attribute tokens() const { return size; }

private:
  mlir::Attribute size;
  llvm::DenseSet<mlir::Value> data;
  llvm::DenseMap<mlir::Operation *, std::pair<Mixing, std::string>> calls;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_TOKENAXES_H
