#include "Mixers.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using xf::ActivationKind;

mlir::Value CausalConv::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                   mlir::Value x) const {
  int64_t channels = width(x);
  mlir::Value K = b.param((module + ".weight").str(), {channels, kernel});
  mlir::Value c = b.conv((as + "_conv").str(), module, K, x);
  if (bias)
    c = b.bias((as + "_biased").str(), c, b.param((module + ".bias").str(), {channels}));
  return b.activation(as, act, c);
}

mlir::Value SelectiveScan::operator()(BlockBuilder &b, StringRef as, StringRef module,
                                      mlir::Value n) const {
  auto path = [&](StringRef name) { return (module + "." + name).str(); };
  auto normed = [&](StringRef name, StringRef stored, mlir::Value x) {
    return norm ? b.norm((name + "_n").str(), path(stored), *norm, x) : x;
  };
  mlir::Value both = b.linear("cg", path("in_proj"), 2 * inner, n, bias);
  mlir::Value u = conv(b, "u", path("conv1d"), b.slice("c", both, 0, inner));
  mlir::Value g = b.activation("g_act", ActivationKind::silu, b.slice("g", both, inner, inner));

  mlir::Value low = b.linear("low", path("x_proj"), rank + 2 * state, u);
  mlir::Value step = normed("step", "dt_layernorm", b.slice("step", low, 0, rank));
  mlir::Value B = normed("B", "b_layernorm", b.slice("B", low, rank, state));
  mlir::Value C = normed("C", "c_layernorm", b.slice("C", low, rank + state, state));
  mlir::Value steps = b.linear("dt_row", path("dt_proj"), inner, step, /*bias=*/true);
  mlir::Value dt = b.activation("dt", ActivationKind::softplus, steps);

  mlir::Value A = b.param(path("A_log"), {inner, state});
  // Each channel is a head of one number, and all share a query, C, and a key, B.
  mlir::Value v = b.reshape("dtu_heads", b.mul("dtu", dt, u), {inner, 1});
  mlir::Value h = b.flat(
      "scanned", b.linearAttention("scanned_heads", module, b.reshape("C_group", C, {1, state}),
                                   b.reshape("B_group", B, {1, state}), v, dt, A));
  mlir::Value y = b.add("kept", h, b.scale("skip", u, b.param(path("D"), {inner})));
  return b.linear(as, path("out_proj"), width(n), b.mul("gated", y, g), bias);
}

int64_t hf::readTimeStepRank(ConfigReader &config, StringRef key, int64_t hidden) {
  int64_t automatic = (hidden + 15) / 16;
  const json::Value *value = config.value(key);
  if (value && value->getAsString() == StringRef("auto"))
    return automatic;
  return config.integer(key, automatic, 1, maxWidth);
}

int64_t hf::readKernel(ConfigReader &config, StringRef key) {
  return config.integer(key, 4, 1, 1 << 10);
}

void hf::ignoreMixerKeys(ConfigReader &config) {
  config.unread({{"use_mamba*"}, {"use_associative_scan"}, {"mamba_chunk_size"}, {"time_step_*"}});
  config.unread({{"calc_logits_for_entire_prompt"}});
  config.require("rescale_prenorm_residual", false, false,
                 "transformers divides the stored matrices by it");
}
