//===- Parts.h - what the equations of several families have in common ----===//
//
// Functions of a vector, each with its sizes and flags from the config. A family's block
// calls them where its equation names them. Their parameters are read from MODULE, a path below
// the layer; `as` is the result's name.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_PARTS_H
#define CTXC_IMPORT_PARTS_H

#include "Family.h"
#include "Rope.h"

namespace ctxc::hf {

/// A norm of queries and keys, from MODULE.qSUFFIX and MODULE.kSUFFIX.
struct HeadNorm {
  Norm norm;
  llvm::StringLiteral suffix = "_norm";
  enum Over {
    head,      ///< each head, with one w for all
    ownModule, ///< each head I, with the w of MODULE.qSUFFIX.I
    row        ///< all heads at once
  } over = head;
};

/// W_o attention(R N W_q n, R N W_k n, W_v n), from MODULE.{q,k,v}_proj and MODULE.OUT, with the
/// rotation R and the norm N where there are some.
struct Attention {
  HeadShape heads = {1, 1, 2};
  std::optional<Rope> rope;
  bool ropeByLayer = false; ///< each layer gives its own, as a setting
  xf::RotaryStyle style = xf::RotaryStyle::half;
  std::optional<HeadNorm> headNorm;
  std::optional<double> scale; ///< of the scores; 1/√dim where absent
  std::optional<double> cap;   ///< a soft cap of the scores
  std::optional<double> clip;  ///< where the entries of N q, N k and v are cut off
  /// ALiBi: what is added to q · k, for each head and position; none where empty.
  std::vector<float> slopes;
  bool slopesRounded = false; ///< as the op says
  bool qkvBias = false, outBias = false;
  bool sinks = false;         ///< MODULE.sinks, a score for each head that has no value
  bool bidirectional = false; ///< positions behind the token are seen too
  llvm::StringLiteral out = "o_proj";

  /// `window` is a setting or null.
  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module, mlir::Value n,
                         mlir::Value window = {}) const;

  /// attention(R q, R k, v) of all heads in one row: what W_o reads. q, k and v are heads;
  /// `sinks` is a parameter or null.
  mlir::Value mix(BlockBuilder &b, mlir::Value q, mlir::Value k, mlir::Value v,
                  mlir::Value window = {}, mlir::Value sinks = {}) const;
  /// The same of q, k and v in one row: of each key head its queries, then it, then its value;
  /// where the checkpoint orders them otherwise, as mixBlocks.
  mlir::Value mixGroups(BlockBuilder &b, mlir::Value row, mlir::Value window = {}) const;
  /// The same of q, k and v in one row: all of q, then all of k, then all of v.
  mlir::Value mixBlocks(BlockBuilder &b, mlir::Value row, mlir::Value window = {}) const;

  /// Sets the slopes that transformers gives to so many heads: 2^(−8 i / n) for the first n heads,
  /// a power of two, and the odd ones of 2n for the rest. They are added to the scores, or, where
  /// `scaled`, to the products, which are scaled then.
  void setAlibi(bool scaled, bool rounded);

private:
  double scoreScale() const;
  mlir::Value project(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module, int64_t count,
                      mlir::Value n) const;
  mlir::Value clipped(BlockBuilder &b, llvm::StringRef as, mlir::Value x) const;
  mlir::Value normed(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                     mlir::Value x) const;
};

/// W_d (act(W_g z) ⊙ W_u z) with `inner` rows in W_g and W_u. `prefix` leads the names of the
/// values inside.
struct GatedMlp {
  int64_t inner = 1;
  xf::ActivationKind act = xf::ActivationKind::silu;
  bool bias = false;
  /// W_g and W_u are MODULE.gate_up_proj, one below the other, not MODULE.{gate,up}_proj.
  bool fused = false;

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module, mlir::Value z,
                         llvm::StringRef prefix = "") const;
};

/// W_d act(W_u z), from the modules `up` and `down` below MODULE, which may be empty.
struct PlainMlp {
  int64_t inner = 1;
  xf::ActivationKind act = xf::ActivationKind::gelu;
  bool bias = true;
  llvm::StringLiteral up = "up_proj", down = "down_proj";

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value z) const;
};

/// Σ_{e ∈ top} w_e E_e z with E_e = D_e (act(G_e z) ⊙ U_e z) of width `inner`, the scores
/// s = softmax(R z), or σ(R z) where `sigmoid`, top the `active` largest of `count`, and w = s,
/// over their sum where `sumToOne`, times `factor`.
struct GatedExperts {
  int64_t count = 1, active = 1, inner = 0;
  xf::ActivationKind act = xf::ActivationKind::silu;
  bool sigmoid = false, sumToOne = false;
  double factor = 1;
  /// The largest of s + b are taken, with b = MODULE.ROUTER.e_score_correction_bias; w is still of
  /// s.
  bool corrected = false;
  int64_t groups = 1, keep = 1; ///< as xf.top_k says
  /// Modules: R below MODULE, and below MODULE.experts.N those of the matrices. Where the
  /// checkpoint has MODULE.experts.gate_up_proj, all experts in one tensor and the rows of G and U
  /// in one matrix, that and MODULE.experts.down_proj are read instead.
  llvm::StringLiteral router = "gate";
  llvm::StringLiteral gate = "gate_proj", up = "up_proj", down = "down_proj";

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value z) const;

private:
  /// top and w.
  std::pair<mlir::Value, mlir::Value> route(BlockBuilder &b, const std::string &path,
                                            mlir::Value z) const;
  mlir::Value fromEach(BlockBuilder &b, const std::string &path, mlir::Value top,
                       mlir::Value z) const;
  mlir::Value fromOne(BlockBuilder &b, const std::string &path, mlir::Value top,
                      mlir::Value z) const;
};

/// Reads how many experts there are, under `key`, and num_experts_per_tok.
void readExperts(ConfigReader &config, llvm::StringRef key, int64_t count, int64_t active,
                 GatedExperts &experts);

/// Reads n_group and topk_group, and checks that they fit the experts, which are read.
void readExpertGroups(ConfigReader &config, int64_t groups, int64_t keep, GatedExperts &experts);

/// `key`, or num_local_experts where that is what the config has: transformers takes either name
/// for the number of experts, and has stored both.
llvm::StringRef expertsKey(const ConfigReader &config, llvm::StringRef key);

/// The layers with a mixture of experts.
struct SparseLayers {
  bool any = true;
  int64_t step = 1;           ///< every `step`-th layer has one
  std::vector<int64_t> dense; ///< except these

  bool operator[](int64_t layer) const {
    return any && (layer + 1) % step == 0 && !llvm::is_contained(dense, layer);
  }
};
/// Reads decoder_sparse_step and mlp_only_layers, and, as readExperts does, the experts, of which
/// there may be none.
SparseLayers readSparseLayers(ConfigReader &config, llvm::StringRef key, int64_t count,
                              int64_t active, GatedExperts &experts);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_PARTS_H
