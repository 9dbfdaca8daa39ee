#include "QwenMixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

void QwenMixture::read(ConfigReader &config, const Defaults &absent) {
  dense.act = readActivation(config, "hidden_act", "silu");
  shared.act = experts.act = dense.act;
  dense.inner = config.integer("intermediate_size", 5632, 1, maxWidth);
  shared.inner = config.integer("shared_expert_intermediate_size", absent.shared, 1, maxWidth);
  experts.inner = config.integer("moe_intermediate_size", absent.inner, 1, maxWidth);
  experts.sumToOne = config.flag("norm_topk_prob", absent.sumToOne);
  sparse = readSparseLayers(config, "num_experts", absent.experts, absent.active, experts);
}

mlir::Value QwenMixture::operator()(BlockBuilder &b, mlir::Value z, int64_t layer) const {
  if (!sparse[layer])
    return dense(b, "mlp", "mlp", z);
  mlir::Value routed = experts(b, "routed", "mlp", z);
  mlir::Value share = b.activation("share", xf::ActivationKind::sigmoid,
                                   b.linear("share_logit", "mlp.shared_expert_gate", 1, z));
  mlir::Value own = shared(b, "shared", "mlp.shared_expert", z, "shared_");
  return b.add("mlp", routed, b.mul("common", own, share));
}
