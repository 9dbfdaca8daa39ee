//===- LatentAttention.h - attention over compressed keys and values (MLA) ===//
//
// DeepSeek's multi-head latent attention: the heads' keys and values are computed from one
// vector c of few entries, and a part r of the keys, which all heads share, has the positions.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_LATENTATTENTION_H
#define CTXC_IMPORT_LATENTATTENTION_H

#include "Parts.h"

namespace ctxc::hf {

/// W_o attention(q, k, v) with, for each head h,
///   q_h = [q_h¹ | R q_h²]      of W_qb N(W_qa n), or of W_q n
///   k_h = [k_h¹ | R r]         of W_kvb N(c) = [k_1¹ | v_1 | k_2¹ | …] and [c | r] = W_kva n
/// a rotation R and RMS norms N, from MODULE.{q_a_proj, q_a_layernorm, q_b_proj} or MODULE.q_proj,
/// MODULE.{kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj, o_proj}.
struct LatentAttention {
  int64_t heads = 1;
  std::optional<int64_t> queryRank; ///< rows of W_qa; none: W_q
  int64_t rank = 1;                 ///< entries of c
  int64_t plain = 1;                ///< of q_h¹ and k_h¹
  int64_t rotated = 2;              ///< of q_h² and r
  int64_t value = 1;                ///< of v_h
  Rope rope;
  xf::RotaryStyle style = xf::RotaryStyle::interleaved;
  double scale = 1; ///< of the scores
  Norm norm = Norm::rms(1e-6);
  bool bias = false; ///< on W_qa, W_kva and W_o

  LatentAttention() = default;
  /// Reads the sizes, the bias, rope_interleave and the scale, which grows with YaRN's
  /// mscale_all_dim; `rope` is that of the config.
  LatentAttention(ConfigReader &config, int64_t heads, Rope rope);

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value n) const;

private:
  mlir::Value queries(BlockBuilder &b, const std::string &module, mlir::Value n,
                      mlir::Value frequencies) const;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_LATENTATTENTION_H
