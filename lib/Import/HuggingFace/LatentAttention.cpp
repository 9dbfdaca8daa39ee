#include "LatentAttention.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

LatentAttention::LatentAttention(ConfigReader &config, int64_t heads, Rope rope)
    : heads(heads), rope(rope) {
  if (!config.isNull("q_lora_rank"))
    queryRank = config.integer("q_lora_rank", 1536, 1, maxWidth);
  rank = config.integer("kv_lora_rank", 512, 1, maxWidth);
  plain = config.integer("qk_nope_head_dim", 128, 1, maxHeads);
  rotated = config.integer("qk_rope_head_dim", 64, 2, maxHeads);
  value = config.integer("v_head_dim", 128, 1, maxHeads);
  bias = config.flag("attention_bias", false);
  if (!config.flag("rope_interleave", true))
    style = xf::RotaryStyle::half;
  scale =
      scoreGrowth(config.object(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters")) /
      std::sqrt(double(plain + rotated));
  if (rotated % 2)
    config.problem("qk_rope_head_dim", "is odd; a rotary embedding needs an even one");
}

mlir::Value LatentAttention::queries(BlockBuilder &b, const std::string &module, mlir::Value n,
                                     mlir::Value frequencies) const {
  int64_t dim = plain + rotated;
  std::string last = module + ".q_proj";
  if (queryRank) {
    mlir::Value low = b.linear("q_low", module + ".q_a_proj", *queryRank, n, bias);
    n = b.norm("q_low_n", module + ".q_a_layernorm", norm, low);
    last = module + ".q_b_proj";
  }
  mlir::Value q = b.heads("q_heads", b.linear("q_row", last, heads * dim, n), dim);
  mlir::Value turned = b.rotary("q_rot", b.slice("q_2", q, plain, rotated, /*along=*/1),
                                frequencies, style, rope.amplitude);
  return b.concat("q", {b.slice("q_1", q, 0, plain, /*along=*/1), turned}, /*along=*/1);
}

mlir::Value LatentAttention::operator()(BlockBuilder &b, StringRef as, StringRef at,
                                        mlir::Value n) const {
  std::string module = at.str();
  mlir::Value f = b.rope("rotary", rotated, rope.frequencies(b.context(), rotated));
  mlir::Value q = queries(b, module, n, f);

  mlir::Value low = b.linear("kv_low", module + ".kv_a_proj_with_mqa", rank + rotated, n, bias);
  mlir::Value c = b.norm("c_n", module + ".kv_a_layernorm", norm, b.slice("c", low, 0, rank));
  mlir::Value r = b.heads("r", b.slice("r_row", low, rank, rotated), rotated);
  r = b.broadcast("r_heads", b.rotary("r_rot", r, f, style, rope.amplitude), heads);

  int64_t each = plain + value;
  mlir::Value kv = b.heads("kv", b.linear("kv_row", module + ".kv_b_proj", heads * each, c), each);
  mlir::Value k = b.concat("k", {b.slice("k_1", kv, 0, plain, /*along=*/1), r}, /*along=*/1);
  mlir::Value v = b.slice("v", kv, plain, value, /*along=*/1);

  BlockBuilder::Scores scores;
  scores.scale = scale;
  mlir::Value o = b.flat("o", b.attention("o_heads", q, k, v, scores));
  return b.linear(as, module + ".o_proj", width(n), o, bias);
}
