// Ops whose meaning is a graph.function, the part of a PyTorch program that they stand for.
#ifndef CTXC_LIB_REFERENCE_GRAPH_FUNCTIONS_H
#define CTXC_LIB_REFERENCE_GRAPH_FUNCTIONS_H

#include "ctxc/Reference/Evaluation.h"
#include "dialects/Graph/Graph.h"

namespace ctxc::reference {

/// Evaluates `op` through its function: a contextual op for all tokens of its state, to which it
/// adds the step's, any other for those of the step. Errors name the call at which it failed.
llvm::Error evaluateFunction(graph::FunctionOp function, mlir::Operation *op,
                             Evaluation &evaluation);

/// What a token's result of a function depends on of the tokens that follow.
enum class Following {
  Nothing,
  Tokens, ///< their numbers: a contextual op sees them
  Count,  ///< how many they are
};
/// Of `op`, whose meaning is `function`, by trials with random operands. The parameters are those
/// of `evaluation`, where they have been set.
llvm::Expected<Following> readsFollowing(graph::FunctionOp function, mlir::Operation *op,
                                         Evaluation &evaluation);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_GRAPH_FUNCTIONS_H
