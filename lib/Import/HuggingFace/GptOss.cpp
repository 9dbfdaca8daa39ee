// gpt-oss (openai/gpt-oss-20b, -120b): attention with sinks, and a mixture of clamped gated MLPs.
//   v = x + W_o attention(R q, R k, v; sinks) + b_o            n = w₁ ⊙ rms x,  q = W_q n + b_q, …
//   y = v + Σ_e p_e (D_e h_e + d_e)                            z = w₂ ⊙ rms v
//   h_e = (u + 1) ⊙ g σ(1.702 g)                               g = min(g', c),  u = u' inside ±c
//                                                              (g', u') = U_e z + u_e
// over the experts e with the largest router logits l = R z + r, with p their softmax. The rows of
// g' and u' alternate in U_e; in a GGUF file they are two matrices. Every other layer sees a
// window.
#include "Decoder.h"
#include <array>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

/// Σ_e p_e (D_e h_e + d_e), as above.
struct ClampedExperts {
  int64_t count = 1, active = 1, inner = 0;
  double limit = 7; ///< c

  mlir::Value operator()(BlockBuilder &b, StringRef as, const std::string &module,
                         mlir::Value z) const {
    mlir::Value l = b.linear("l", module + ".router", count, z, /*bias=*/true);
    mlir::Value top = b.topK("top", l, active);
    mlir::Value p = b.softmax("p", b.gather("l_top", l, top));
    if (b.has(module + ".experts.0.gate_proj.weight")) {
      mlir::Value g = apart(b, "g_all", module, "gate_proj", inner, top, z);
      mlir::Value h = gated(b, g, apart(b, "u_all", module, "up_proj", inner, top, z));
      return b.combine(as, p, apart(b, "e", module, "down_proj", width(z), top, h));
    }
    mlir::Value gu = affine(b, "gu", module + ".experts.gate_up_proj", 2 * inner, top, z);
    mlir::Value pairs = b.reshape("gu_pairs", gu, {active, inner, 2});
    mlir::Value h = gated(b, half(b, "g_all", pairs, 0), half(b, "u_all", pairs, 1));
    return b.combine(as, p, affine(b, "e", module + ".experts.down_proj", width(z), top, h));
  }

private:
  mlir::Value gated(BlockBuilder &b, mlir::Value all, mlir::Value up) const {
    mlir::Value g = b.clampAbove("g", all, limit), u = b.clamp("u", up, limit);
    mlir::Value act = b.activation("g_act", xf::ActivationKind::quick_gelu, g);
    return b.add("h", b.mul("gated", u, act), act);
  }

  /// W_e x + b_e for the selected e, with a matrix for each of them, stored as (out, in).
  mlir::Value apart(BlockBuilder &b, StringRef as, const std::string &module, StringRef part,
                    int64_t out, mlir::Value top, mlir::Value x) const {
    mlir::Value y = b.expertLinear((as + "_product").str(), module + ".experts.*." + part.str(),
                                   count, out, top, x);
    mlir::Value biases = b.param(module + ".experts." + part.str() + "_bias", {count, out});
    return b.add(as, y, b.gather((as + "_biases").str(), biases, top));
  }

  /// W_e x + b_e for the selected e, with W_e stored as (in, out), or in mxfp4 as (out, in).
  mlir::Value affine(BlockBuilder &b, StringRef as, const std::string &name, int64_t out,
                     mlir::Value top, mlir::Value x) const {
    bool transposed = !b.isQuantized(name);
    std::array<int64_t, 3> shape{count, out, width(x)};
    if (transposed)
      std::swap(shape[1], shape[2]);
    mlir::Value bank = b.param(name, shape);
    mlir::Value y = b.expertLinear((as + "_product").str(), name, bank, top, x, transposed);
    mlir::Value biases = b.param(name + "_bias", {count, out});
    return b.add(as, y, b.gather((as + "_biases").str(), biases, top));
  }

  mlir::Value half(BlockBuilder &b, StringRef as, mlir::Value pairs, int64_t which) const {
    mlir::Value every = b.slice((as + "_second").str(), pairs, which, 1, /*along=*/2);
    return b.reshape(as, every, {active, inner});
  }
};

class GptOss : public Decoder {
public:
  explicit GptOss(ConfigReader &config) : Decoder("gpt_oss", config, defaults()) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
    attention.qkvBias = attention.outBias = config.flag("attention_bias", true);
    attention.sinks = true;
    if (!config.has("rope_parameters") && !config.has("rope_scaling")) {
      attention.rope->yarn = {32, 32, 1, 4096, 0};
      attention.rope->amplitude = yarnGrowth(32);
    }
    windows = readSlidingLayers(config, layers, [](int64_t i) { return i % 2 == 0; }, 128);
    experts.inner = std::get<GatedMlp>(mlp).inner; // whose function is not theirs
    experts.count = config.integer("num_local_experts", 128, 1, maxExperts);
    experts.active = config.integer("num_experts_per_tok", 4, 1, maxExperts);
    if (experts.active > experts.count)
      config.problem("num_experts_per_tok",
                     "is more than num_local_experts = " + Twine(experts.count));
    experts.limit = config.number("swiglu_limit", 7, 1e-3, 1e6);
    if (config.number("swiglu_alpha", 1.702, 0, 1e6) != 1.702)
      config.problem("swiglu_alpha", "is not supported; expected 1.702");
    // Other names of what is read.
    config.unread({{"experts_per_token"}, {"initial_context_length"}});
  }

protected:
  Value feed(BlockBuilder &b, Value z, int64_t) const override {
    return experts(b, "mlp", "mlp", z);
  }

private:
  static Defaults defaults() {
    Defaults absent{36, 2880, 2880, 201088, 64, 8, 64};
    absent.rope.base = 150000;
    return absent;
  }

  ClampedExperts experts;
};

} // namespace

std::unique_ptr<Family> hf::makeGptOss(ConfigReader &config) {
  return std::make_unique<GptOss>(config);
}
