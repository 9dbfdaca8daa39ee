//===- TokenAxes.h - which ops of a program mix tokens ---------------------===//
//
// Each value of a graph.program belongs to one token at a time, or to several:
//
//            Whole        belongs to several tokens, or nothing is known
//          /       \.
//    Token(axis)    Fixed       one axis is that of the tokens; the same for every input
//
// A value is Fixed if it does not depend on the model's input: parameters, buffers, positions, and
// values computed only from these. A value is Token if, along one axis, entry i depends only on
// token i. Any other value is Whole. AtenOps.def has the rule of each op.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_TOKENAXES_H
#define CTXC_ANALYSIS_TOKENAXES_H

#include "dialects/Graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

/// What an op does with the tokens of its operands.
enum class Mixing {
  None,    ///< result i reads only entry i of each operand
  Tokens,  ///< it joins tokens
  Unknown, ///< there is no rule; it counts as joining them
};

class TokenAxes {
public:
  explicit TokenAxes(graph::ProgramOp program);

  /// Whether the value depends on the model's input.
  bool isData(mlir::Value value) const { return data.contains(value); }
  /// Whether the call's results depend only on the sizes and types of its operand, not its numbers.
  static bool ignoresNumbers(graph::CallOp call);
  /// How `call` treats the tokens of its data; None if it reads no data.
  Mixing mixing(graph::CallOp call) const { return calls.lookup(call).first; }
  /// Why, in words; empty if it reads no data.
  llvm::StringRef reason(graph::CallOp call) const;

  /// The axis of the tokens in `type`; none if no axis or several have the number of tokens as
  /// their size, or if the size of an axis is an expression of this number.
  std::optional<unsigned> axis(graph::SymbolicType type) const;
  std::optional<unsigned> axis(mlir::Value value) const;
  /// How many axes have a size that depends on the number of tokens.
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
