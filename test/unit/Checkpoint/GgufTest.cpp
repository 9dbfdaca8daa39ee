// GGUF files, valid and hostile, built byte by byte.
#include "GgufFixture.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include <cmath>
#include <random>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct Gguf : GgufBytes {
  std::string problem() const { return messageOf(GgufFile::open(write("m.gguf", file()))); }
  std::string modelProblem() const { return messageOf(Checkpoint::open(write("m.gguf", file()))); }
};

TEST_F(Gguf, ReadsAGoodFile) {
  keys = {words("general.architecture", "llama"),
          integer("n", 7),
          real("x", 0.5f),
          key("yes", 7, raw<uint8_t>(1)),
          key("big", 10, raw<uint64_t>(~0ull)),
          key("list", 9, raw<uint32_t>(8) + raw<uint64_t>(2) + text("a") + text("")),
          key("numbers", 9, raw<uint32_t>(5) + raw<uint64_t>(2) + raw<int32_t>(-1) + raw(2))};
  tensors = {{"w", {64, 3}, 8, 2 * 3 * 34}, {"v", {5}, 0, 20}};
  auto opened = GgufFile::open(write("m.gguf", file()));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  const GgufFile &f = **opened;
  EXPECT_EQ(f.integer("n"), 7);
  EXPECT_EQ(f.number("n"), 7.0);
  EXPECT_EQ(f.number("x"), 0.5);
  EXPECT_EQ(f.integer("x"), std::nullopt);
  EXPECT_EQ(f.flag("yes"), true);
  EXPECT_EQ(f.integer("big"), std::nullopt);
  EXPECT_EQ(f.texts("list"), (std::vector<StringRef>{"a", ""}));
  EXPECT_EQ(f.numbers("numbers"), (std::vector<double>{-1, 2}));
  EXPECT_EQ(f.texts("numbers"), std::nullopt);
  const TensorView *w = f.find("w");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->dtype, DType::Q8_0);
  EXPECT_EQ(ArrayRef<int64_t>(w->shape), ArrayRef<int64_t>({3, 64}));
  EXPECT_EQ(w->bytes, 2u * 3 * 34);
  EXPECT_EQ(f.find("v")->data - w->data, 224);
}

TEST_F(Gguf, RefusesWhatDoesNotHold) {
  Entry good{"w", {4}, 0, 16};
  auto with = [&](std::vector<Entry> t) {
    tensors = std::move(t);
    return problem();
  };
  EXPECT_NE(with({{"w", {4}, 9, 16}}).find("has ggml's type 9"), std::string::npos);
  EXPECT_NE(with({{"w", {4}, ~0u, 16}}).find("has ggml's type"), std::string::npos);
  EXPECT_NE(with({{"w", {33}, 8, 34}}).find("rows of 33 elements; expected a multiple of 32"),
            std::string::npos);
  EXPECT_NE(with({{"w", {4, 1, 1, 1, 1}, 0, 16}}).find("has 5 dimensions"), std::string::npos);
  EXPECT_NE(with({{"w", {1ull << 40, 1ull << 40}, 0, 16}}).find("more elements than any file"),
            std::string::npos);
  // Whatever the order in which the sizes are multiplied.
  for (std::vector<uint64_t> sizes : {std::vector<uint64_t>{0, 1ull << 40, 1ull << 40},
                                      {1ull << 40, 0, 1ull << 40},
                                      {1ull << 40, 1ull << 40, 0}})
    EXPECT_NE(with({{"w", sizes, 0, 0}}).find("more elements than any file"), std::string::npos);
  EXPECT_NE(with({{"w", {~0ull}, 0, 16}}).find("more elements than any file"), std::string::npos);
  EXPECT_NE(with({{"w", {1ull << 40}, 0, 16}}).find("goes beyond the end"), std::string::npos);
  EXPECT_NE(with({good, good}).find("tensor 'w' is given twice"), std::string::npos);
  tensors = {good};
  tail = "PK";
  EXPECT_NE(problem().find("has bytes after its last tensor"), std::string::npos);
  tail.clear();
  shift = 32;
  EXPECT_NE(problem().find("begins at offset 32 of the data; expected 0"), std::string::npos);
  shift = 0;
  for (uint32_t bad : {0u, 3u, 1u << 31}) {
    keys = {integer("general.alignment", bad)};
    EXPECT_NE(problem().find("expected a power of two"), std::string::npos) << bad;
  }
  keys = {integer("n", 1), integer("n", 2)};
  EXPECT_NE(problem().find("key 'n' is given twice"), std::string::npos);
  keys = {key("n", 13, "")};
  EXPECT_NE(problem().find("unknown type 13"), std::string::npos);
  keys = {key("n", 9, raw<uint32_t>(9) + raw<uint64_t>(1))};
  EXPECT_NE(problem().find("array of the unknown type 9"), std::string::npos);
  for (uint32_t type : {0u, 8u, 12u}) { // numbers of entries that no file can hold
    keys = {key("n", 9, raw(type) + raw<uint64_t>(1ull << 61))};
    EXPECT_NE(problem().find("key 'n'"), std::string::npos);
  }
  keys = {};
  version = 1;
  EXPECT_NE(problem().find("has GGUF version 1"), std::string::npos);
  EXPECT_NE(messageOf(GgufFile::open(write("m.gguf", "PK\3\4"))).find("is not a GGUF file"),
            std::string::npos);
}

/// A file that is truncated anywhere, or has any byte changed, is refused or read; if it is read,
/// every tensor lies inside the file.
TEST_F(Gguf, SurvivesDamage) {
  keys = {words("general.architecture", "llama"), integer("llama.block_count", 2),
          key("list", 9, raw<uint32_t>(8) + raw<uint64_t>(2) + text("a") + text("bc"))};
  tensors = {{"w", {32, 2}, 2, 36}, {"v", {4}, 0, 16}};
  const std::string whole = file();
  auto check = [&](const std::string &bytes) {
    std::string p = write("m.gguf", bytes);
    auto opened = GgufFile::open(p);
    if (!opened) {
      EXPECT_EQ(messageOf(std::move(opened)).find(p), 0u);
      return;
    }
    ArrayRef<uint8_t> all = (*opened)->file().bytes();
    for (const TensorView &t : (*opened)->tensors()) {
      EXPECT_GE(t.data, all.data());
      EXPECT_LE(t.data + t.bytes, all.data() + all.size());
    }
    messageOf(Checkpoint::open(p));
  };
  for (size_t length = 1; length < whole.size(); ++length)
    check(whole.substr(0, length));
  std::mt19937 random(1);
  for (size_t at = 0; at < whole.size(); ++at)
    for (int i = 0; i < 2; ++i) {
      std::string changed = whole;
      changed[at] = char(i == 0 ? 0xff : random());
      check(changed);
    }
}

TEST_F(Gguf, IsAModelOnlyWhereEveryKeyIsKnown) {
  auto base = [] {
    return std::vector<std::string>{words("general.architecture", "llama"),
                                    integer("llama.block_count", 1),
                                    integer("llama.embedding_length", 32),
                                    integer("llama.feed_forward_length", 64),
                                    integer("llama.attention.head_count", 2),
                                    real("llama.rope.freq_base", 500.0f),
                                    real("llama.attention.layer_norm_rms_epsilon", 1e-5f),
                                    words("tokenizer.ggml.model", "anything"),
                                    integer("general.file_type", 3)};
  };
  keys = base();
  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"blk.0.ffn_norm.weight", {32}, 0, 128},
             {"blk.0.other.weight", {1}, 0, 4}};
  auto opened = Checkpoint::open(write("m.gguf", file()));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  const Checkpoint &c = **opened;
  EXPECT_EQ(c.config().getString("model_type"), StringRef("llama"));
  EXPECT_EQ(c.config().getInteger("vocab_size"), 9);
  EXPECT_EQ(c.config().getInteger("num_key_value_heads"), 2);
  EXPECT_EQ(c.config().getBoolean("tie_word_embeddings"), true);
  EXPECT_EQ(c.config().getObject("rope_parameters")->getNumber("rope_theta"), 500.0);
  EXPECT_TRUE(c.find("model.layers.0.post_attention_layernorm.weight"));
  EXPECT_TRUE(c.find("blk.0.other.weight"));
  EXPECT_TRUE(c.conventions().interleavedHeads);

  tensors.push_back({"rope_freqs.weight", {8}, 0, 32});
  opened = Checkpoint::open(write("m.gguf", file()));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  const llvm::json::Object *rope = (*opened)->config().getObject("rope_parameters");
  EXPECT_EQ(rope->getString("rope_type"), StringRef("longrope"));
  EXPECT_EQ(rope->getArray("short_factor")->size(), 8u);
  EXPECT_EQ(rope->getNumber("attention_factor"), 1.0);
  EXPECT_FALSE((*opened)->find("rope_freqs.weight"));
  tensors.back() = {"rope_freqs.weight", {9}, 0, 36};
  EXPECT_NE(modelProblem().find("tensor 'rope_freqs.weight' is not understood; expected 8 numbers"),
            std::string::npos);
  tensors.pop_back();

  keys = base();
  keys.push_back(real("llama.logit_scale", 0.5f));
  keys.push_back(integer("llama.expert_count", 8));
  keys.push_back(words("llama.rope.scaling.type", "dynamic"));
  keys.push_back(integer("llama.vocab_size", 8));
  std::string message = modelProblem();
  for (const char *part :
       {"key 'llama.logit_scale' = 0.5 is not understood: it may mean a factor of logits",
        "'llama.expert_count' = 8 is not supported",
        "key 'llama.vocab_size' = 8 is not supported; expected 9, the rows of 'token_embd.weight'",
        "key 'llama.rope.scaling.type' = 'dynamic' is not supported; linear, none, yarn and "
        "longrope are"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  keys = {words("general.architecture", "mamba")};
  EXPECT_NE(modelProblem().find("'mamba' is not supported"), std::string::npos);
  keys = {words("general.architecture", "llama"), words("llama.block_count", "two")};
  message = modelProblem();
  EXPECT_NE(message.find("key 'llama.block_count' = 'two' is out of range; expected an integer"),
            std::string::npos);
  EXPECT_NE(message.find("has no key 'llama.embedding_length'"), std::string::npos);
  keys = {words("general.architecture", "llama"), words("general.type", "adapter")};
  EXPECT_NE(modelProblem().find("of type 'adapter' (general.type); expected a model"),
            std::string::npos);
}

TEST_F(Gguf, RotationsThatAreStretched) {
  auto rope = [&](StringRef architecture, std::vector<std::string> more,
                  std::vector<std::string> &&rest) {
    std::string a = architecture.str();
    keys = {words("general.architecture", a),
            integer(a + ".block_count", 1),
            integer(a + ".embedding_length", 32),
            integer(a + ".feed_forward_length", 64),
            integer(a + ".attention.head_count", 2),
            real(a + ".attention.layer_norm_rms_epsilon", 1e-5f)};
    keys.insert(keys.end(), more.begin(), more.end());
    keys.insert(keys.end(), rest.begin(), rest.end());
    auto opened = Checkpoint::open(write("m.gguf", file()));
    if (!opened) {
      ADD_FAILURE() << messageOf(std::move(opened));
      return llvm::json::Object();
    }
    return llvm::json::Object(*(*opened)->config().getObject("rope_parameters"));
  };
  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4}};
  llvm::json::Object yarn =
      rope("qwen2",
           {words("qwen2.rope.scaling.type", "yarn"), real("qwen2.rope.scaling.factor", 4),
            integer("qwen2.rope.scaling.original_context_length", 64)},
           {});
  EXPECT_EQ(yarn.getString("rope_type"), StringRef("yarn"));
  EXPECT_EQ(yarn.getInteger("original_max_position_embeddings"), 64);
  EXPECT_NEAR(*yarn.getNumber("attention_factor"), 0.1 * std::log(4.0) + 1, 1e-12);

  // Half of each head of 16 entries; the share is a little more, and gives 8 of them again.
  llvm::json::Object part = rope("glm4", {integer("glm4.rope.dimension_count", 8)}, {});
  EXPECT_EQ(int64_t(16 * *part.getNumber("partial_rotary_factor")), 8);

  tensors.push_back({"rope_factors_long.weight", {8}, 0, 32});
  tensors.push_back({"rope_factors_short.weight", {8}, 0, 32});
  llvm::json::Object longer = rope("phi3", {real("phi3.rope.scaling.attn_factor", 1.25f)},
                                   {integer("phi3.rope.scaling.original_context_length", 64)});
  EXPECT_EQ(longer.getString("rope_type"), StringRef("longrope"));
  EXPECT_EQ(longer.getNumber("attention_factor"), 1.25);
  EXPECT_EQ(longer.getArray("long_factor")->size(), 8u);
}

TEST_F(Gguf, OneArchitectureHasSeveralForms) {
  auto opened = [&](StringRef architecture, std::vector<std::string> more) {
    std::string a = architecture.str();
    keys = {words("general.architecture", a),
            integer(a + ".block_count", 1),
            integer(a + ".embedding_length", 32),
            integer(a + ".feed_forward_length", 64),
            integer(a + ".attention.head_count", 2),
            real(a + ".attention.layer_norm_rms_epsilon", 1e-5f)};
    keys.insert(keys.end(), more.begin(), more.end());
    return Checkpoint::open(write("m.gguf", file()));
  };
  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"blk.0.ffn_gate_inp.weight", {32, 3}, 0, 3 * 32 * 4},
             {"blk.0.ffn_gate_exps.weight", {32, 5, 3}, 8, 3 * 5 * 34}};
  auto mixture =
      opened("llama", {integer("llama.expert_count", 3), integer("llama.expert_used_count", 2)});
  ASSERT_TRUE(bool(mixture)) << messageOf(std::move(mixture));
  EXPECT_EQ((*mixture)->config().getString("model_type"), StringRef("mixtral"));
  EXPECT_TRUE((*mixture)->find("model.layers.0.block_sparse_moe.gate.weight"));
  EXPECT_TRUE((*mixture)->find("model.layers.0.block_sparse_moe.experts.2.w1.weight"));

  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"blk.0.attn_norm.weight", {32}, 0, 128},
             {"blk.0.attn_norm_2.weight", {32}, 0, 128}};
  auto falcon = opened("falcon", {integer("falcon.attention.head_count_kv", 2),
                                  real("falcon.attention.layer_norm_epsilon", 1e-5f)});
  ASSERT_TRUE(bool(falcon)) << messageOf(std::move(falcon));
  EXPECT_EQ((*falcon)->config().getInteger("num_ln_in_parallel_attn"), 2);
  EXPECT_TRUE((*falcon)->find("transformer.h.0.ln_mlp.weight"));
  EXPECT_TRUE((*falcon)->find("transformer.h.0.ln_attn.weight"));
  EXPECT_TRUE((*falcon)->conventions().queriesFirst);

  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"position_embd.weight", {32, 7}, 0, 7 * 32 * 4}};
  auto gpt2 = opened("gpt2", {integer("gpt2.context_length", 7),
                              real("gpt2.attention.layer_norm_epsilon", 1e-5f)});
  ASSERT_TRUE(bool(gpt2)) << messageOf(std::move(gpt2));
  EXPECT_EQ((*gpt2)->config().getInteger("n_positions"), 7);
  EXPECT_EQ((*gpt2)->config().get("rope_parameters"), nullptr);
  EXPECT_TRUE((*gpt2)->find("transformer.wpe.weight"));
  EXPECT_TRUE((*gpt2)->conventions().plainMatrices);
}

TEST_F(Gguf, ABankIsATensorForEachExpert) {
  keys = {words("general.architecture", "qwen3moe"),
          integer("qwen3moe.block_count", 1),
          integer("qwen3moe.embedding_length", 32),
          integer("qwen3moe.feed_forward_length", 64),
          integer("qwen3moe.attention.head_count", 2),
          real("qwen3moe.attention.layer_norm_rms_epsilon", 1e-5f),
          integer("qwen3moe.expert_count", 3),
          integer("qwen3moe.expert_used_count", 2),
          integer("qwen3moe.expert_feed_forward_length", 5)};
  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"blk.0.ffn_gate_inp.weight", {32, 3}, 0, 3 * 32 * 4},
             {"blk.0.ffn_up_exps.weight", {32, 5, 3}, 8, 3 * 5 * 34}};
  auto opened = Checkpoint::open(write("m.gguf", file()));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  const Checkpoint &c = **opened;
  EXPECT_EQ(c.config().getInteger("num_experts"), 3);
  EXPECT_EQ(c.config().getInteger("num_experts_per_tok"), 2);
  EXPECT_EQ(c.config().getInteger("moe_intermediate_size"), 5);
  EXPECT_TRUE(c.find("model.layers.0.mlp.gate.weight"));
  const TensorView *first = c.find("model.layers.0.mlp.experts.0.up_proj.weight"),
                   *last = c.find("model.layers.0.mlp.experts.2.up_proj.weight");
  ASSERT_TRUE(first && last);
  EXPECT_EQ(ArrayRef<int64_t>(last->shape), ArrayRef<int64_t>({5, 32}));
  EXPECT_EQ(last->dtype, DType::Q8_0);
  EXPECT_EQ(last->bytes, 5u * 34);
  EXPECT_EQ(last->data - first->data, 2 * 5 * 34);
  EXPECT_EQ(c.find("model.layers.0.mlp.experts.3.up_proj.weight"), nullptr);

  keys.erase(keys.begin() + 6);
  EXPECT_NE(modelProblem().find("has no key 'qwen3moe.expert_count'"), std::string::npos);
}

TEST_F(Gguf, BanksOfGptOss) {
  keys = {words("general.architecture", "gpt-oss"),
          integer("gpt-oss.block_count", 1),
          integer("gpt-oss.embedding_length", 32),
          integer("gpt-oss.feed_forward_length", 5),
          integer("gpt-oss.attention.head_count", 2),
          real("gpt-oss.attention.layer_norm_rms_epsilon", 1e-5f),
          integer("gpt-oss.attention.sliding_window", 128),
          integer("gpt-oss.expert_count", 3),
          integer("gpt-oss.expert_used_count", 2),
          integer("gpt-oss.expert_feed_forward_length", 5)};
  constexpr unsigned mxfp4 = 39;
  tensors = {{"token_embd.weight", {32, 9}, 0, 9 * 32 * 4},
             {"blk.0.attn_sinks.weight", {2}, 0, 2 * 4},
             {"blk.0.ffn_gate_inp.bias", {3}, 0, 3 * 4},
             {"blk.0.ffn_gate_exps.bias", {5, 3}, 0, 3 * 5 * 4},
             {"blk.0.ffn_gate_exps.weight", {32, 5, 3}, mxfp4, 3 * 5 * 17}};
  auto opened = Checkpoint::open(write("m.gguf", file()));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  const Checkpoint &c = **opened;
  EXPECT_EQ(c.config().getInteger("num_local_experts"), 3);
  EXPECT_EQ(c.config().getInteger("sliding_window"), 128);
  for (const char *name : {"self_attn.sinks", "mlp.router.bias", "mlp.experts.gate_proj_bias"})
    EXPECT_TRUE(c.find(std::string("model.layers.0.") + name)) << name;
  const TensorView *last = c.find("model.layers.0.mlp.experts.2.gate_proj.weight");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->dtype, DType::BlockMXFP4);
  EXPECT_EQ(last->bytes, 5u * 17);

  keys.back() = integer("gpt-oss.expert_feed_forward_length", 6);
  EXPECT_NE(modelProblem().find("expert_feed_forward_length' = 6 is not supported; expected 5"),
            std::string::npos);
}

TEST_F(Gguf, FindsAScaleThatIsNotFinite) {
  tensors = {{"w", {32, 2}, 8, 68}};
  std::string bytes = file();
  bytes[bytes.size() - 96 + 34] = 0; // the second row's float16 scale: infinity
  bytes[bytes.size() - 96 + 35] = 0x7c;
  auto opened = GgufFile::open(write("m.gguf", bytes));
  ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
  std::string message = messageOf(checkFinite((*opened)->tensors()[0]));
  EXPECT_NE(message.find("tensor 'w': element [1, "), std::string::npos) << message;
}

} // namespace
