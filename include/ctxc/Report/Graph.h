//===- Graph.h - draws a verdict: the block as a graph ---------------------===//
#ifndef CTXC_REPORT_GRAPH_H
#define CTXC_REPORT_GRAPH_H

#include "ctxc/Planning/ModelCheck.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// Writes the blocks in graphviz's language, one cluster for each group: every op with its name and
/// parameters, and the contextual part A(C, x) in a box. Colours mark what depends on the context,
/// F, G, the chain from G to its goal, the goal, and what a rejection names; a legend explains
/// them.
void printGraph(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups);

/// The same as an SVG, by graphviz's `dot`. Errors: no `dot` in PATH, its failure.
llvm::Expected<std::string> drawGraph(llvm::ArrayRef<VerdictGroup> groups);

/// Writes the graph to `path`: as it is (.dot), or as a picture (.svg) by graphviz's `dot`.
/// Errors: another ending, no `dot` in PATH, its failure, a file that cannot be written.
llvm::Error writeGraph(llvm::StringRef path, llvm::ArrayRef<VerdictGroup> groups);

} // namespace ctxc

#endif // CTXC_REPORT_GRAPH_H
