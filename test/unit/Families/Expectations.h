// What is known of each family's block from its paper and its code, written down by hand: the table
// of docs/families.md must say the same, or argue why it does not.
#ifndef CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H
#define CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H

#include <string>
#include <vector>

namespace ctxc::test {

/// The layers of one structure of a checkpoint: structures are counted from the first layer on.
struct Layers {
  Layers(const char *golden, size_t structure = 0) : golden(golden), structure(structure) {}
  std::string golden;
  size_t structure;
};

/// One row. A family whose configs give blocks of different forms has several.
struct Expectation {
  const char *name, *modelType;
  std::vector<Layers> layers; ///< of this row, the first are shown
  const char *form;           ///< sequential or parallel
  const char *before, *after; ///< norms in front of linears, and behind a branch
  const char *output;         ///< the parameter that is enough to control the output
  const char *verdict;        ///< by the paper's theorems
  /// Why our output control patches something else, or more; null where it is `output`.
  const char *argument;
};

constexpr const char *postNorm =
    "The scale of the norm behind the branch is enough where no entry of its data is (nearly) "
    "zero, and real activations have such entries: the change is the difference divided by them. "
    "The default plan gives the direction to the matrix before the norm and the lengths to the "
    "scale, which bounds both changes; `--plan` with the scale and without the matrix, or "
    "`--update naive`, is the scale alone.";

inline const std::vector<Expectation> &expectations() {
  static const std::vector<Expectation> rows = {
      {"Cohere (Command-R)",
       "cohere",
       {"cohere"},
       "parallel",
       "1 LN without bias",
       "none",
       "mlp.down_proj.weight",
       "controllable",
       nullptr},
      {"Cohere with q, k norms (Command-R+)",
       "cohere",
       {"cohere-norms"},
       "parallel",
       "1 LN without bias",
       "none",
       "mlp.down_proj.weight",
       "controllable",
       nullptr},
      {"Falcon 7B",
       "falcon",
       {"falcon", "falcon-older-config"},
       "parallel",
       "1 LN",
       "none",
       "mlp.dense_4h_to_h.weight",
       "controllable",
       nullptr},
      {"Gemma 2",
       "gemma2",
       {"gemma2"},
       "sequential",
       "2 RMS (1+w)",
       "2 RMS (1+w)",
       "post_feedforward_layernorm.weight",
       "controllable",
       postNorm},
      {"Gemma 3",
       "gemma3_text",
       {"gemma3", "gemma3-mixed", "gemma3-older-config"},
       "sequential",
       "2 RMS (1+w)",
       "2 RMS (1+w)",
       "post_feedforward_layernorm.weight",
       "controllable",
       postNorm},
      {"GPT-2",
       "gpt2",
       {"gpt2", "gpt2-bare"},
       "sequential",
       "2 LN",
       "none",
       "mlp.c_proj.bias",
       "controllable",
       nullptr},
      {"GPT-J",
       "gptj",
       {"gptj"},
       "parallel",
       "1 LN",
       "none",
       "mlp.fc_out.bias",
       "controllable",
       nullptr},
      {"Llama",
       "llama",
       {"llama", "llama-sharded", "llama3-rope", "llama3-rope-older-config"},
       "sequential",
       "2 RMS w",
       "none",
       "mlp.down_proj.weight",
       "controllable",
       nullptr},
      {"Llama with MLP biases",
       "llama",
       {"llama-bias"},
       "sequential",
       "2 RMS w",
       "none",
       "mlp.down_proj.bias",
       "controllable",
       nullptr},
      {"Mixtral",
       "mixtral",
       {"mixtral", "mixtral-sharded"},
       "sequential",
       "2 RMS w",
       "none",
       "block_sparse_moe.experts.*.w2.weight",
       "controllable",
       nullptr},
      {"OLMo 2",
       "olmo2",
       {"olmo2"},
       "sequential",
       "none",
       "2 RMS w",
       "post_feedforward_layernorm.weight",
       "controllable",
       postNorm},
      {"Phi 3, Phi 4",
       "phi3",
       {"phi3"},
       "sequential",
       "2 RMS w",
       "none",
       "mlp.down_proj.weight",
       "controllable",
       nullptr},
      {"Qwen 2 MoE, mixtures",
       "qwen2_moe",
       {"qwen2-moe", {"qwen2-moe-normed", 1}},
       "sequential",
       "2 RMS w",
       "none",
       "mlp.shared_expert.down_proj.weight",
       "controllable",
       nullptr},
      {"Qwen 2 MoE, other layers",
       "qwen2_moe",
       {{"qwen2-moe", 1}, {"qwen2-moe-normed", 0}},
       "sequential",
       "2 RMS w",
       "none",
       "mlp.down_proj.weight",
       "controllable",
       nullptr},
  };
  return rows;
}

/// Model types that are another's block in a config of another form.
struct Alias {
  const char *modelType, *of;
};
constexpr Alias aliases[] = {{"gemma3", "gemma3_text"}}; // with images; its text_config is read

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H
