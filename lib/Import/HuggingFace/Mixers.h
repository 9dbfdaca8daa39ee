//===- Mixers.h - what stands in the place of attention -------------------===//
//
// Mixers that remember a state instead of all tokens. Their projections, norms and gates are ops
// like any other; xf.conv and xf.linear_attention read the tokens before. Parameters are read from
// MODULE, a path below the layer.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_MIXERS_H
#define CTXC_IMPORT_MIXERS_H

#include "Family.h"

namespace ctxc::hf {

/// act(K * x + b) with the causal convolution * of each channel by itself: K = MODULE.weight,
/// (channels, 1, kernel), and b = MODULE.bias.
struct CausalConv {
  int64_t kernel = 4;
  xf::ActivationKind act = xf::ActivationKind::silu;
  bool bias = true;

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value x) const;
};

/// Mamba's mixer, of width I with S numbers of state in each channel:
///
///   W_o (y ⊙ silu g)      [c; g] = W_i n,   u = act(K * c + b),   [τ; B; C] = W_x u
///   y = scan(u, Δ, −exp A_log, B, C) + D ⊙ u       Δ = softplus(W_τ τ + b_τ)
///
/// with norms of τ, B and C where there is one. `scan` is an xf.linear_attention, in which each
/// channel is a head: h = exp(Δ A) ⊙ h' + Δ u Bᵀ with the state h' of the token before, and h C.
struct SelectiveScan {
  int64_t inner = 1, state = 16, rank = 1;
  bool bias = false; ///< of W_i and W_o
  CausalConv conv;
  std::optional<Norm> norm; ///< from MODULE.{dt,b,c}_layernorm

  mlir::Value operator()(BlockBuilder &b, llvm::StringRef as, llvm::StringRef module,
                         mlir::Value n) const;
};

/// Reads the rank of Δ under `key`: a number, or "auto", one for 16 entries of the width.
int64_t readTimeStepRank(ConfigReader &config, llvm::StringRef key, int64_t hidden);

/// Reads the size of the convolution's kernel under `key`.
int64_t readKernel(ConfigReader &config, llvm::StringRef key);

/// Names the keys that only other implementations of these mixers, or their initialisation, read;
/// refuses the one of these keys that transformers applies to stored weights as well.
void ignoreMixerKeys(ConfigReader &config);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_MIXERS_H
