// Data flow in one block: the checker's own walks, in one pass each over ops that
// stand in order.
#ifndef CTXC_LIB_PROOF_FLOW_H
#define CTXC_LIB_PROOF_FLOW_H

#include "ctxc/Proof/Structure.h"
#include "dialects/XF/BlockFacts.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace ctxc::proof {

using Values = llvm::DenseSet<mlir::Value>;

class Flow {
public:
  /// `sites` is "mlp" (no op of the contextual part is patched) or "all".
  Flow(const Structure &structure, llvm::StringRef sites);

  xf::BlockOp block() const { return structure.block; }
  mlir::Block &body() const { return block().getBody().front(); }
  mlir::ValueRange outputs() const { return body().getTerminator()->getOperands(); }

  /// `seeds` and all values that they flow into, but not through `walls`.
  Values forward(const Values &seeds, const Values &walls = {}) const;

  /// Where the context comes in: contextual ops, and inputs that depend on it.
  const Values &sources() const { return starts; }
  bool depends(mlir::Value value) const { return dependent.contains(value); }
  /// Values that are the same number for all activations and parameters, which end the dependence.
  const Values &constants() const { return unchanging; }
  bool inContextualPart(mlir::Operation *op) const { return contextual.contains(op); }

  const xf::Facts &facts(mlir::Value value) const { return known[value]; }
  /// Where `needs` of `value` can fail.
  xf::Zeros failure(xf::Obligation needs, mlir::Value value) const {
    return xf::failureOf(needs, value, facts(value));
  }
  /// Whether two parameters have a stored tensor in common.
  bool areOne(xf::ParamOp a, xf::ParamOp b) const {
    return known.identities().areOne(a.getName(), b.getName());
  }

  /// Why no plan may patch `op`; empty where one may.
  std::string refusal(mlir::Operation *op) const;
  /// Why `op` cannot be solved for operand `index`; empty where it can.
  std::string linkBreak(mlir::Operation *op, unsigned index) const;

  /// Whether some patch might change the parameter `operand` of `op`: a superset of what
  /// plans patch, on which rejections rest.
  bool mayChange(mlir::Operation *op, mlir::Value operand) const;
  /// The names of all parameters for which that is true, in the block's order.
  Names changeable() const;
  /// All values that such changes move, but not through `walls`.
  Values moved(const Values &walls) const;

  bool isFrozen(xf::ParamOp param) const;
  bool isOutOfScope(mlir::Operation *op) const {
    return (allSites ? upstream : contextual).contains(op);
  }

private:
  friend class PartWalk;
  void findContextualPart();
  void findUpstream();
  Values trailingTaps() const;

  const Structure &structure;
  bool allSites;
  Values starts, dependent, unchanging;
  llvm::DenseSet<mlir::Operation *> live; ///< an output depends on them
  llvm::DenseSet<mlir::Operation *> upstream, contextual, following;
  xf::BlockFacts known;
};

int64_t sizeOf(mlir::Value value);
/// The op's stored parameter, or null.
xf::ParamOp parameterOf(mlir::Operation *op);

} // namespace ctxc::proof

#endif // CTXC_LIB_PROOF_FLOW_H
