//===- BlockGraph.h - a block's values as a graph -------------------------===//
//
// One vertex for each block argument and each op, in block order; an edge from a producer to an op
// for every operand that reads it. The graph algorithms of the analyses (reachability, cuts,
// witness paths) work on it. Valid while the block is unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_BLOCKGRAPH_H
#define CTXC_ANALYSIS_BLOCKGRAPH_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

class BlockGraph {
public:
  using Set = llvm::BitVector; ///< a set of vertices

  explicit BlockGraph(xf::BlockOp block);

  xf::BlockOp getBlock() const { return block; }
  unsigned size() const { return ops.size(); }
  /// The vertices that `vertex` has an edge to, and those with an edge to it: an entry per edge.
  llvm::ArrayRef<unsigned> successors(unsigned vertex) const { return out[vertex]; }
  llvm::ArrayRef<unsigned> predecessors(unsigned vertex) const { return in[vertex]; }

  /// The vertex of an op of the block.
  unsigned vertex(mlir::Operation *op) const { return vertices.lookup(op); }
  /// The vertex that produces `value`: its op's, or a block argument's own.
  unsigned vertex(mlir::Value value) const;
  /// The op of a vertex; null for a block argument.
  mlir::Operation *op(unsigned vertex) const { return ops[vertex]; }
  mlir::Operation *yield() const { return ops.back(); }

  /// Vertices of the block arguments.
  Set inputs() const;
  /// Vertices of the ops that read the context and whose results an output depends on.
  Set contextualOps() const;
  Set none() const { return Set(size()); }

  /// Vertices reachable from `from` (whose vertices are in the result), along edges, or against
  /// them if `backwards`; a vertex of `blocked` is neither entered nor left.
  Set reach(const Set &from, const Set &blocked, bool backwards = false) const;
  Set reach(const Set &from) const { return reach(from, none()); }
  Set reach(unsigned from) const;

  /// A shortest path from a vertex of `from` to `to` that avoids `blocked`, both
  /// ends included; empty if there is none.
  llvm::SmallVector<unsigned> path(const Set &from, unsigned to, const Set &blocked) const;

private:
  xf::BlockOp block;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 0> out, in;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> vertices;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_BLOCKGRAPH_H
