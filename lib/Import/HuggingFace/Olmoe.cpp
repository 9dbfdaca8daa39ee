// OLMoE: Llama's block with norms over all heads of q and k together, and a mixture of gated MLPs.
// With N(w, x) = w ⊙ rms x, and q, k, v clipped at ±clip_qkv where that is given:
//   v = x + W_o attention(R N(w_q, W_q n), R N(w_k, W_k n), W_v n)     n = N(w₁, x)
//   y = v + Σ_e p_e W_dᵉ (silu(W_gᵉ z) ⊙ W_uᵉ z)                       z = N(w₂, v)
// over the experts e with the largest entries of p = softmax(R z), which are made to sum to one
// where norm_topk_prob.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

std::unique_ptr<Family> hf::makeOlmoe(ConfigReader &config) {
  Decoder::Defaults absent{16, 2048, 2048, 50304, 16, std::nullopt, std::nullopt};
  auto family = std::make_unique<Decoder>("olmoe", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
  family->readAttentionBias(config);
  family->attention.headNorm = HeadNorm{family->norm, "_norm", HeadNorm::row};
  if (family->attention.heads.dim * family->attention.heads.queries != family->hidden)
    config.problem("head_dim", "is not hidden_size / num_attention_heads, as the norms of q and k "
                               "are wide");
  if (config.has("clip_qkv"))
    family->attention.clip = config.number("clip_qkv", 1, 1e-6, 1e9);

  const auto &each = std::get<GatedMlp>(family->mlp);
  GatedExperts experts;
  experts.inner = each.inner;
  experts.act = each.act;
  experts.sumToOne = config.flag("norm_topk_prob", false);
  readExperts(config, expertsKey(config, "num_experts"), 64, 8, experts);
  family->mlp = experts;
  return family;
}
