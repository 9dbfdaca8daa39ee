// The keys of adapter_config.json, which are those of PEFT's LoraConfig.
#include "PeftSettings.h"

using namespace llvm;
using namespace ctxc;

/// What PEFT, in Python, takes for no.
static constexpr StringLiteral falsy = R"([false, 0, "", [], {}])";

static constexpr KeyRule keysOfPeft[] = {
    // What is changed, and by what.
    {"peft_type", isRead, "the kind of adapter, which has to be LORA"},
    {"r", isRead, "the rank of factors"},
    {"lora_alpha", isRead, "the scale, times the rank"},
    {"rank_pattern", isRead, "other ranks, by regular expressions of modules"},
    {"alpha_pattern", isRead, "other scales, by regular expressions of modules"},
    {"use_rslora", isRead, "that the scale is divided by the root of the rank"},
    {"target_modules", isRead,
     "the changed modules: names, ends of names, or a regular expression"},
    {"exclude_modules", isRead, "modules that are not changed"},
    {"layers_to_transform", isRead, "the layers whose modules are changed"},
    {"layers_pattern", isRead, "the name of the list of layers"},
    {"modules_to_save", isRead, "norms whose whole weights are in the adapter"},
    {"target_parameters", isRead, "changed parameters, such as banks of experts"},

    // Who made it, from what, and how it was trained.
    {"task_type", R"(["CAUSAL_LM", "FEATURE_EXTRACTION"])", "a head for another task"},
    {"auto_mapping"},
    {"peft_version"},
    {"base_model_name_or_path"},
    {"revision"},
    {"inference_mode"},
    {"lora_dropout"},
    {"runtime_config"},

    // How factors began. Some of these ways change the model's own weights as well.
    {"init_lora_weights", R"([true, false, "gaussian", "eva", "orthogonal", "mica"])",
     "that the model's own matrices are changed before the factors are added, as PiSSA, OLoRA, "
     "CorDA, LoftQ and LoRA-GA do; save the adapter from PEFT with "
     "path_initial_model_for_weight_conversion"},
    {"loftq_config"},
    {"eva_config"},
    {"corda_config"},
    {"lora_ga_config"},
    {"qalora_group_size"},
    {"megatron_core"},

    // Decided by the model: GPT-2's matrices alone are stored with their inputs first.
    {"fan_in_fan_out"},

    // Other changes than a product of factors at every token.
    {"bias", isRead, "which biases are changed; expected none"},
    {"lora_bias", falsy, "a bias beside the factors"},
    {"use_dora", falsy, "that columns are scaled, as DoRA does"},
    {"use_qalora", falsy, "that inputs are pooled, as QA-LoRA does"},
    {"alora_invocation_tokens", never,
     "that the adapter begins at these tokens, as activated LoRA does"},
    {"layer_replication", R"([[]])", "that layers stand several times in the model"},
    {"trainable_token_indices", never, "changed embeddings of some tokens"},
    {"megatron_config", R"([{}])", "matrices of Megatron"},
    {"ensure_weight_tying", falsy, "that a change of the embedding is one of the head"},
    {"velora_config", never, "VeLoRA"},
    {"monteclora_config", never, "that factors are sampled, as MonteCLoRA does"},
    {"use_bdlora", never, "factors of diagonal blocks, as BD-LoRA has"},
    {"arrow_config", never, "a choice among several adapters, as Arrow makes"},
    {"kasa_config", never, "that the model's own matrices lose ranks, as KaSA does"},

    {"*", never, "something that PEFT 0.21 does not know"},
};

const KeyTable ctxc::peftKeys{"adapter_config.json", keysOfPeft};
