//===- Body.h - follows the context through a model's body -----------------===//
//
// A proof's claims are about layers. The checker itself finds out whether these are enough: it
// follows the context through the model's body, where every patched layer's outputs are equal in
// both runs.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROOF_BODY_H
#define CTXC_PROOF_BODY_H

#include "ctxc/Proof/Proof.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc::proof {

/// The body of the module's model, whose layers from `startLayer` on are patched. `module` has one.
class Body {
public:
  Body(mlir::ModuleOp module, int64_t startLayer)
      : Body(module, *module.getOps<xf::ModelOp>().begin(), startLayer) {}
  Body(const Body &) = delete;

  /// "model 'm'"
  const std::string &title() const { return name; }
  mlir::Block &ops() const { return block; }
  mlir::Value logits() const { return block.getTerminator()->getOperand(0); }
  bool depends(mlir::Value value) const { return dependent.contains(value); }
  /// Whether the context enters the body in the op of `result`, and not by its operands.
  bool enters(mlir::OpResult result) const { return entries.contains(result); }
  /// Whether a change of `from` reaches `result` in one op.
  bool passes(mlir::Value from, mlir::OpResult result) const;

  /// The name of a value in the model's printed text.
  std::string nameOf(mlir::Value value) const;

private:
  Body(mlir::ModuleOp module, xf::ModelOp model, int64_t startLayer);
  xf::BlockOp blockOf(xf::LayerOp layer) const {
    return symbols.lookup<xf::BlockOp>(layer.getBlock());
  }

  mlir::SymbolTable symbols;
  mlir::Block &block;
  std::string name;
  mutable mlir::AsmState text;
  llvm::DenseSet<mlir::Operation *> patched;
  llvm::DenseSet<mlir::Value> dependent, entries;
};

/// What is wrong with `past`, a proof's path of the context to the logits past the patched layers.
/// Empty if `past` is such a path, or if there is no such path and `past` is empty.
std::vector<std::string> checkPast(const Body &body, const Names &past);

} // namespace ctxc::proof

#endif // CTXC_PROOF_BODY_H
