// One name for what PyTorch has several for.
#ifndef CTXC_LIB_IMPORT_GRAPH_SPELLING_H
#define CTXC_LIB_IMPORT_GRAPH_SPELLING_H

#include "dialects/Graph/Graph.h"
#include <string>

namespace ctxc::pt2 {

/// The name of the op `target` of PyTorch, which has second names for some that take the same
/// arguments.
std::string nameOfOp(llvm::StringRef target);

/// Writes sums with factors, interpolations and sums of products as the ops that they are made of.
void spellOut(graph::ProgramOp program);

/// Replaces what `run_decompositions()` with PyTorch's own table makes of an op by the op itself,
/// where a pattern reads that; and erases calls whose results nothing reads.
void recompose(graph::ProgramOp program);

/// Takes masks of the tokens with the largest scores, and of chunks, as those of all tokens, and
/// limits the program's positions to those up to which they are.
void takeWholeSelections(graph::ProgramOp program);

} // namespace ctxc::pt2

#endif // CTXC_LIB_IMPORT_GRAPH_SPELLING_H
