// One name for what PyTorch has several for.
#ifndef CTXC_LIB_IMPORT_GRAPH_SPELLING_H
#define CTXC_LIB_IMPORT_GRAPH_SPELLING_H

#include "dialects/Graph/Graph.h"
#include <string>

namespace ctxc::pt2 {

/// The name of the op `target` of PyTorch, which has second names for some that take the same
/// arguments.
std::string nameOfOp(llvm::StringRef target);

/// Replaces native_layer_norm, whose further results only training needs, by layer_norm: programs
/// have it after `run_decompositions()` with PyTorch's own table.
void dropUnusedResults(graph::ProgramOp program);

} // namespace ctxc::pt2

#endif // CTXC_LIB_IMPORT_GRAPH_SPELLING_H
