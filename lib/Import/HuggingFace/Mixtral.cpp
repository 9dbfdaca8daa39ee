// Mixtral: Llama's attention, and a mixture of gated MLPs.
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)              n = w₁ ⊙ rms x
//   y = v + Σ_e p_e W₂ᵉ (silu(W₁ᵉ z) ⊙ W₃ᵉ z)                  z = w₂ ⊙ rms v
// over the experts e with the largest entries of p = softmax(R z), which are made to sum to one.
// All layers may see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

class Mixtral : public Decoder {
public:
  explicit Mixtral(ConfigReader &config) : Decoder("mixtral", config, defaults()) {
    norm = Norm::rms(config.number("rms_norm_eps", 1e-5, 0, 1));
    windows = readOneWindow(config, layers, std::nullopt);
    const auto &each = std::get<GatedMlp>(mlp);
    experts.inner = each.inner;
    experts.act = each.act;
    experts.sumToOne = true;
    experts.gate = "w1", experts.up = "w3", experts.down = "w2";
    readExperts(config, "num_local_experts", 8, 2, experts);
  }

protected:
  Value feed(BlockBuilder &b, Value z, int64_t) const override {
    // The path in transformers 5, which can store it so too.
    return experts(b, "mlp", b.has("mlp.gate.weight") ? "mlp" : "block_sparse_moe", z);
  }

private:
  static Defaults defaults() {
    Defaults absent{32, 4096, 14336, 32000, 32, 8, std::nullopt};
    absent.rope.base = 1e6;
    return absent;
  }

  GatedExperts experts;
};

} // namespace

std::unique_ptr<Family> hf::makeMixtral(ConfigReader &config) {
  return std::make_unique<Mixtral>(config);
}
