// SmolLM 3: Llama's block; every fourth layer does not rotate.
//   v = x + W_o attention(R W_q n, R W_k n, W_v n)     n = w₁ ⊙ rms x
//   y = v + W_d (silu(W_g z) ⊙ W_u z)                  z = w₂ ⊙ rms v
// Layers that do not rotate may see a window.
#include "Decoder.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

/// From no_rope_layers, whose entries are 1 where a layer does rotate.
static void readRotatingLayers(ConfigReader &config, Decoder &family) {
  int64_t interval = config.integer("no_rope_layer_interval", 4, 1, maxLayers);
  std::vector<int64_t> given = config.integers("no_rope_layers", 0, 1);
  for (int64_t i = 0; i < family.layers && !config.has("no_rope_layers"); ++i)
    given.push_back((i + 1) % interval != 0);
  if (int64_t(given.size()) != family.layers)
    config.problem("no_rope_layers",
                   "has " + Twine(given.size()) +
                       " entries; expected num_hidden_layers = " + Twine(family.layers));
  given.resize(family.layers);
  family.rotates.assign(given.begin(), given.end());
}

static void readWindows(ConfigReader &config, Decoder &family) {
  bool slides = config.flag("use_sliding_window", false) && config.has("sliding_window");
  family.windows = readSlidingLayers(
      config, family.layers, [&](int64_t i) { return slides && !family.rotates[i]; }, 1);
  if (family.windows.any() && !config.has("sliding_window"))
    config.problem("layer_types", "has layers of type sliding_attention, and there is no "
                                  "sliding_window");
}

std::unique_ptr<Family> hf::makeSmolLM3(ConfigReader &config) {
  RopeForm form;
  form.base = 2e6;
  Decoder::Defaults absent{36, 2048, 11008, 128256, 16, 4, std::nullopt, /*tied=*/true, form};
  auto family = std::make_unique<Decoder>("smollm3", config, absent);
  family->norm = Norm::rms(config.number("rms_norm_eps", 1e-6, 0, 1));
  family->readAttentionBias(config);
  family->readMlpBias(config);
  readRotatingLayers(config, *family);
  readWindows(config, *family);
  return family;
}
