#include "ctxc/Tokenizer/TokenizerKeys.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr KeyRule ofTokenizerJson[] = {
    {"version", isRead, "1.0"},
    // For batches; transformers sets them anew for each call.
    {"truncation"},
    {"padding"},
    {"added_tokens", isRead, "tokens that are found in a text before all else"},
    {"normalizer", isRead, "what changes a text; each kind has its own keys, and no others"},
    {"pre_tokenizer", isRead, "where a text is split, likewise"},
    {"model", isRead, "the vocabulary and its rule, likewise"},
    {"post_processor", isRead, "tokens around a text, likewise"},
    {"decoder", isRead, "how tokens become text, likewise"},
    {"*", never, "something that tokenizers 0.23 does not know"},
};

constexpr KeyRule ofTokenizerConfig[] = {
    {"tokenizer_class", isRead, "whether the class has rules of its own, as Llama's"},
    {"added_tokens_decoder", isRead, "tokens by id, beside those of the tokenizer's own file"},
    {"additional_special_tokens", isRead, "further special tokens"},
    {"extra_special_tokens", isRead, "the same, also by name"},
    {"model_specific_special_tokens", isRead, "the same, by name, for chat templates"},
    {"split_special_tokens", isRead, "that special tokens in a text are split"},
    {"legacy", isRead, "of Llama's class: where spaces go"},
    {"add_bos_token", isRead, "whether a token begins each text"},
    {"add_eos_token", isRead, "whether a token ends each text"},
    {"add_prefix_space", isRead, "whether a text begins with a space"},
    {"chat_template", isRead, "conversations as text"},
    {"do_lower_case", isRead, "of a class of its own: that letters become small"},
    {"strip_accents", isRead, "of a class of its own: that accents are removed"},
    {"tokenize_chinese_chars", isRead, "of a class of its own: spaces around Chinese characters"},
    {"*_token", isRead, "special tokens by role"},

    // Who made it, and from what.
    {"name_or_path"},
    {"_commit_hash"},
    {"transformers_version"},
    {"auto_map"},
    {"processor_class"},
    {"tokenizer_type"},
    {"*_file"},
    {"init_inputs"},
    {"is_local"},
    {"local_files_only"},
    {"files_loaded"},
    {"use_fast"},
    {"verbose"},

    // For batches, lengths and results of other kinds.
    {"model_max_length"},
    {"max_len"},
    {"max_length"},
    {"max_model_input_sizes"},
    {"padding_side", R"(["left", "right"])", "an error"},
    {"truncation_side", R"(["left", "right"])", "an error"},
    {"model_input_names"},
    {"stride"},
    {"truncation"},
    {"truncation_strategy"},
    {"padding"},
    {"pad_to_multiple_of"},
    {"pad_token_type_id"},
    {"*_id"},
    {"*_ids"},
    {"vocab_size"},
    {"return_token_type_ids"},

    // For text from ids, and conversations that are read again.
    {"clean_up_tokenization_spaces*"},
    {"spaces_between_special_tokens"},
    {"errors"},
    {"trim_offsets"},
    {"use_default_system_prompt"},
    {"response_template"},
    {"response_schema"},
    {"chat_control_tokens"},
    {"do_basic_tokenize"},
    {"never_split"},

    {"sp_model_kwargs", R"([{}])", "that pieces are drawn by chance"},
    {"backend", R"(["tokenizers", "sentencepiece"])", "another program"},
    {"from_slow", off, "that the tokenizer is made again"},
    {"fix_mistral_regex", off, "another splitting expression"},
    {"*", never, "something that is not known here"},
};

constexpr KeyRule ofSpecialTokensMap[] = {
    {"*_token", isRead, "special tokens by role"},
    {"additional_special_tokens", isRead, "further special tokens"},
    {"extra_special_tokens", isRead, "the same"},
    {"*", never, "something that is not known here"},
};

constexpr KeyRule ofAddedTokens[] = {{"*", isRead, "a token, with its id"}};

// Where a key may make transformers take another token than the most probable one, this is said.
constexpr KeyRule ofGenerationConfig[] = {
    {"eos_token_id", isRead, "the tokens that end a text"},
    // How many tokens there are to be, what each is drawn by, and what is kept of them.
    {"max_length"},
    {"max_new_tokens"},
    {"do_sample"},
    {"temperature"},
    {"top_*"},
    {"min_p"},
    {"typical_p"},
    {"epsilon_cutoff"},
    {"eta_cutoff"},
    {"renormalize_logits"},
    {"remove_invalid_values"},
    {"num_return_sequences"},
    {"output_*"},
    {"return_*"},
    {"*use_cache"},
    {"cache_*"},
    {"max_cache_len"},
    {"prefill_chunk_size"},
    {"*_token_id"},
    {"trust_remote_code"},
    {"_from_model_config"},
    {"_commit_hash"},
    {"transformers_version"},
    {"disable_compile"},
    {"compile_config"},
    {"repetition_penalty", "[1, 1.0]", "tokens that were there already being less probable"},
    {"no_repeat_ngram_size", off, "the same of several tokens"},
    {"num_beams", "[1]", "a search among several texts"},
    {"num_beam_groups", "[1]", "the same"},
    {"*", off, "another choice of tokens"},
};

constexpr KeyRule ofGgufTokenizer[] = {
    {"tokenizer.ggml.model", isRead, "the kind of vocabulary"},
    {"tokenizer.ggml.pre", isRead, "where a text is split"},
    {"tokenizer.ggml.tokens", isRead, "the tokens' texts"},
    {"tokenizer.ggml.token_type", isRead, "what kind of token each is"},
    {"tokenizer.ggml.scores", isRead, "which pieces are joined first"},
    {"tokenizer.ggml.merges", isRead, "the same, of byte pairs"},
    {"tokenizer.ggml.bos_token_id", isRead, "the token that begins a text"},
    {"tokenizer.ggml.eos_token_id", isRead, "the token that ends a text"},
    {"tokenizer.ggml.eot_token_id", isRead, "another token that ends a text"},
    {"tokenizer.ggml.eom_token_id", isRead, "likewise"},
    {"tokenizer.ggml.fim_*", isRead, "marks of a text's parts, some of which end it"},
    {"tokenizer.ggml.unknown_token_id", isRead, "the token of what has none"},
    {"tokenizer.ggml.seperator_token_id", isRead, "the token that ends a text of BERT's"},
    {"tokenizer.ggml.padding_token_id", isRead, "a role"},
    {"tokenizer.ggml.cls_token_id", isRead, "a role, for chat templates"},
    {"tokenizer.ggml.mask_token_id", isRead, "a role, for chat templates"},
    {"tokenizer.ggml.add_bos_token", isRead, "whether a token begins each text"},
    {"tokenizer.ggml.add_eos_token", isRead, "whether a token ends each text"},
    {"tokenizer.ggml.add_space_prefix", isRead, "whether a text begins with a space"},
    {"tokenizer.ggml.remove_extra_whitespaces", isRead, "of Unigram: whether spaces are joined"},
    {"tokenizer.ggml.precompiled_charsmap", isRead, "of Unigram: what is replaced in a text"},
    {"tokenizer.ggml.normalizer.lowercase", isRead, "of BERT: that letters become small"},
    {"tokenizer.ggml.normalizer.strip_accents", isRead, "of BERT: that accents are removed"},
    {"tokenizer.chat_template", isRead, "conversations as text"},

    {"tokenizer.chat_template*"},
    {"tokenizer.huggingface.json"},
    {"tokenizer.ggml.token_type_count"},
    {"tokenizer.ggml.suppress_tokens"},
    {"tokenizer.ggml.prefix_token_id"},
    {"tokenizer.ggml.suffix_token_id"},
    {"tokenizer.ggml.middle_token_id"},
    {"tokenizer.ggml.add_sep_token"},
    {"tokenizer.rwkv.world", never, "RWKV's vocabulary"},
    {"*", never, "something that is not known here"},
};

} // namespace

const KeyTable ctxc::tokenizerJsonKeys{"tokenizer.json", ofTokenizerJson},
    ctxc::tokenizerConfigKeys{"tokenizer_config.json", ofTokenizerConfig},
    ctxc::specialTokensMapKeys{"special_tokens_map.json", ofSpecialTokensMap},
    ctxc::addedTokensKeys{"added_tokens.json", ofAddedTokens},
    ctxc::generationConfigKeys{"generation_config.json", ofGenerationConfig},
    ctxc::ggufTokenizerKeys{"GGUF, the keys of the tokenizer", ofGgufTokenizer};
