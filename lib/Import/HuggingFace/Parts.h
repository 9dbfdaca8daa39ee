//===- Parts.h - what the equations of several families have in common ----===//
//
// Functions of a vector, each with the sizes and flags that its config gives. A family's block
// calls them where its equation names them. Their parameters are read from MODULE, a path below
// the layer; `as` is the result's name.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_PARTS_H
#define CTXC_IMPORT_PARTS_H

#include "Family.h"
#include "Rope.h"

namespace ctxc::hf {

/// W_o attention(R W_q n, R W_k n, W_v n) with whole heads rotated and scores over √dim, from
/// MODULE.{q,k,v,o}_proj.
struct RotaryAttention {
  HeadShape heads;
  Rope rope;
  bool qkvBias = false, outBias = false;

  /// `window` is a setting or null.
  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module, mlir::Value n,
                         mlir::Value window = {}) const;
};

/// W_d (act(W_g z) ⊙ W_u z) with `inner` rows in W_g and W_u, from MODULE.{gate,up,down}_proj.
/// `prefix` leads the names of the values inside.
struct GatedMlp {
  int64_t inner = 0;
  xf::ActivationKind act = xf::ActivationKind::silu;
  bool bias = false;

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module, mlir::Value z,
                         llvm::StringRef prefix = "") const;
};

/// Σ_{e ∈ top} w_e E_e z with E_e = D_e (act(G_e z) ⊙ U_e z) of width `inner`, the scores
/// s = softmax(R z), top the `active` largest of `count`, and w = s, over their sum where
/// `sumToOne`.
struct GatedExperts {
  int64_t count = 1, active = 1, inner = 0;
  xf::ActivationKind act = xf::ActivationKind::silu;
  bool sumToOne = false;
  /// Modules: R below MODULE, and below MODULE.experts.N those of the matrices.
  llvm::StringLiteral router = "gate";
  llvm::StringLiteral gate = "gate_proj", up = "up_proj", down = "down_proj";

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value z) const;
};

/// Reads how many experts there are, under `key`, and num_experts_per_tok.
void readExperts(ConfigReader &config, llvm::StringRef key, int64_t count, int64_t active,
                 GatedExperts &experts);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_PARTS_H
