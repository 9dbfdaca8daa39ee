//===- QwenMixture.h - the MLPs of Qwen's mixtures ------------------------===//
#ifndef CTXC_IMPORT_QWENMIXTURE_H
#define CTXC_IMPORT_QWENMIXTURE_H

#include "Parts.h"

namespace ctxc::hf {

/// A layer's Σ_e p_e E_e z + σ(w_s · z) S z with gated MLPs E_e and S, over the experts e with the
/// largest entries of p = softmax(R z), which are made to sum to one where norm_topk_prob; in
/// other layers one gated MLP M z. Modules are those below mlp.
class QwenMixture {
public:
  struct Defaults {
    int64_t experts, active, inner, shared;
    bool sumToOne;
  };

  void read(ConfigReader &config, const Defaults &absent);
  mlir::Value operator()(BlockBuilder &b, mlir::Value z, int64_t layer) const;

private:
  GatedExperts experts;
  GatedMlp shared, dense;
  SparseLayers sparse;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_QWENMIXTURE_H
