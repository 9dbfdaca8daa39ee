//===- Sites.h - which ops of a block a patch may change ------------------===//
//
// The paper patches the MLP: the part of a block that follows the contextual part `A(C, x)`, or
// stands beside it. The terms, for an op with a parameter:
//
//   residual stream: a block input, or the result of an op that can be solved for
//     the stream and does not mix it with a product of context-dependent values
//     (sums, constants, scales; not norms, matrices, activations);
//   contextual part: all ops that a contextual op depends on, and the ops
//     between a contextual op and the end of the part.
//
// The part ends where a sum adds the context to the residual stream. If the context joins the
// stream in another way, or not at all, the part ends
//
//   - if an op reads both the stream itself and the context ([x; a], a gate): with the later value
//     that the whole context passes and that begins a new stream, because several ops read it
//     (v = W [x; a], the gated sum of GTrXL); with the op itself if there is no such value;
//   - with a concatenation of the context and a branch beside it ([a; m]), whose matrix is the
//     branch's outer one too;
//   - with such a value behind the last contextual op, if no stream goes past it (v = W_o a);
//   - behind the first matrix, the output projection, if another matrix follows it.
//
// A contextual op that can be solved for its own token's operand (TapOpInterface) may stand behind
// the MLP: if the context has entered the stream before it through another op, and no matrix
// follows, it does not count as contextual here.
//
// So W_q, W_k, W_v, W_o, norms of queries and of the attention's output are in the
// contextual part, and so is a norm that attention and a parallel MLP share; an MLP is not.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_SITES_H
#define CTXC_ANALYSIS_SITES_H

#include "ctxc/Analysis/Bindings.h"
#include "ctxc/Analysis/BlockGraph.h"
#include "ctxc/Analysis/ZeroRange.h"

namespace ctxc {

/// Which ops a plan may choose from.
enum class SiteScope {
  MLP, ///< the paper's: none of the contextual part
  All  ///< also the ops between a contextual op and the stream that its result joins (W_o)
};

/// Whether an op of AssignableOpInterface may be patched, and if not why.
enum class SiteStatus {
  Assignable,
  ContextualPart, ///< it belongs to A(C, x)
  Computed,       ///< its parameter is not an xf.param
  Frozen,         ///< by the parameter, or by the layer's list
  SharedInBlock,  ///< another op of the block uses a stored tensor of the parameter
  SharedByLayers, ///< another layer uses the stored parameter
  Narrow,         ///< one parameter serves several vectors at once
  Zero            ///< its data can be zero on an open set of activations
};

/// How a patch may treat an op.
struct Site {
  mlir::Operation *op;
  xf::ParamOp param; ///< null if the status is Computed
  SiteStatus status;
  std::string why; ///< the status in words; empty if assignable

  xf::AssignableOpInterface assignable() const { return mlir::cast<xf::AssignableOpInterface>(op); }
};

class Sites {
public:
  Sites(const BlockGraph &graph, const ZeroRange &zeros, const Bindings &bindings,
        SiteScope scope = SiteScope::MLP);

  /// All ops with a parameter that could be assigned, in block order.
  llvm::ArrayRef<Site> all() const { return sites; }
  /// The site of `op`; null if the op is not of AssignableOpInterface.
  const Site *lookup(mlir::Operation *op) const;
  bool isAssignable(mlir::Operation *op) const;

  bool inContextualPart(mlir::Operation *op) const { return contextual.test(graph.vertex(op)); }
  /// Whether no patch may touch what `op` computes: it is in the contextual part, or, with
  /// scope All, read by a contextual op.
  bool isOutOfScope(mlir::Operation *op) const {
    return (scope == SiteScope::All ? before : contextual).test(graph.vertex(op));
  }
  /// Whether `op` depends on a residual stream that the context has entered: in a block with
  /// several attentions, the ops after the first.
  bool followsContext(mlir::Operation *op) const { return after.test(graph.vertex(op)); }
  bool isFrozen(xf::ParamOp param) const;
  /// The block's first name for the stored tensors of `param`.
  llvm::StringRef identity(xf::ParamOp param) const { return names[param.getName()]; }

  /// The name that users know a parameterised op by: its parameter's.
  static std::string name(mlir::Operation *op);

private:
  void findContextualPart();
  Site classify(mlir::Operation *op, const ZeroRange &zeros) const;
  mlir::Operation *otherUser(xf::ParamOp param, mlir::Operation *op) const;

  const BlockGraph &graph;
  const Bindings &bindings;
  SiteScope scope;
  BlockGraph::Set contextual, before, after;
  const xf::Identities &names; ///< of stored tensors
  llvm::StringSet<> frozen;    ///< by the block or by the bindings; identities
  llvm::SmallVector<Site> sites;
  llvm::DenseMap<mlir::Operation *, unsigned> indices;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_SITES_H
