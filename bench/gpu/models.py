"""The shapes of real models that are measured on GPUs, as their config.json files give them."""

CONTEXT = 1023  # tokens before the one that is measured, the default of --emit=cost

LLAMA_8B = dict(
    architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=128256, hidden_size=4096,
    intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
    head_dim=128, hidden_act="silu", rms_norm_eps=1e-5, max_position_embeddings=131072,
    tie_word_embeddings=False, rope_theta=500000.0,
    rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=8192))


def gemma3(hidden, intermediate, layers, heads, groups, vocabulary, window, scale=None):
    full = dict(rope_theta=1e6, rope_type="default")
    if scale:
        full = dict(rope_theta=1e6, rope_type="linear", factor=scale)
    return dict(
        architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", vocab_size=vocabulary,
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=groups, head_dim=256,
        hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6, max_position_embeddings=32768,
        query_pre_attn_scalar=256, sliding_window=window, tie_word_embeddings=True,
        layer_types=["full_attention" if i % 6 == 5 else "sliding_attention"
                     for i in range(layers)],
        rope_parameters=dict(full_attention=full,
                             sliding_attention=dict(rope_theta=1e4, rope_type="default")))


FALCON_7B = dict(
    architectures=["FalconForCausalLM"], model_type="falcon", vocab_size=65024, hidden_size=4544,
    num_hidden_layers=32, num_attention_heads=71, multi_query=True, parallel_attn=True,
    new_decoder_architecture=False, bias=False, alibi=False, layer_norm_epsilon=1e-5,
    max_position_embeddings=2048, rope_theta=10000.0, tie_word_embeddings=True)

MIXTRAL = dict(
    architectures=["MixtralForCausalLM"], model_type="mixtral", vocab_size=32000, hidden_size=4096,
    intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
    num_local_experts=8, num_experts_per_tok=2, hidden_act="silu", rms_norm_eps=1e-5,
    max_position_embeddings=32768, rope_theta=1e6, tie_word_embeddings=False)

MODELS = {
    "gemma-3-1b": gemma3(1152, 6912, 26, 4, 1, 262144, 512),
    "gemma-3-4b": gemma3(2560, 10240, 34, 8, 4, 262208, 1024, scale=8.0),
    "llama-3.1-8b": LLAMA_8B,
    "falcon-7b": FALCON_7B,
    "mixtral-8x7b": MIXTRAL,
}

# In which types Llama's matrices are stored, besides bfloat16.
QUANTISED = ("Q8_0", "Q6_K", "Q4_K_M", "Q4_0", "MXFP4")

# Small models, for the test of this script.
SMALL = {
    "small-llama": dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=128, hidden_size=64,
        intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, hidden_act="silu", rms_norm_eps=1e-5, max_position_embeddings=256,
        tie_word_embeddings=False, rope_theta=10000.0),
    "small-gemma-3": gemma3(64, 96, 6, 4, 1, 128, 4, scale=8.0),
    "small-falcon": FALCON_7B | dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                     vocab_size=128),
}

# A small Llama whose kernels are compared in each of these types; rows of its last matrix are as long as a span.
CHECKED_LLAMA = LLAMA_8B | dict(vocab_size=64, hidden_size=256, intermediate_size=1024, num_hidden_layers=1,
                                num_attention_heads=4, num_key_value_heads=2, head_dim=64,
                                max_position_embeddings=64, rope_scaling=None)

# Models of test/goldens and examples whose kernels are compared, with their types.
CHECKED = [
    ("test/goldens/llama", "f32"), ("test/goldens/llama", "bf16"),
    ("test/goldens/falcon", "f32"), ("test/goldens/falcon", "bf16"),
    ("test/goldens/gemma", "f32"), ("test/goldens/gemma3", "f32"),
    ("test/goldens/gemma3", "bf16"), ("test/goldens/gpt2", "f32"),
    ("test/goldens/falcon-alibi", "f32"), ("test/goldens/mixtral", "bf16"),
    ("examples/models/gemma3-kjv-1m", "f32"),
]
