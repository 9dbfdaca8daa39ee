// Adapters: their contents, and what is refused. test/judge/adapters.py judges that other programs
// load them, and what these then compute.
#include "ctxc/Export/Adapter.h"
#include "Fixture.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/StrictJson.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Adapters : PatchDirectory {
  AdapterModel model;
  Patch matrices;

  void SetUp() override {
    PatchDirectory::SetUp();
    model.directory = "m";
    model.modelType = "llama";
    ParameterPatch down;
    down.parameter = "model.layers.10.mlp.down_proj.weight";
    down.shape = {2, 3};
    down.u = {1, -2};
    down.v = {0.5, 0.25, 4};
    matrices.parameters = {down};
  }
  std::string peft(const Patch &patch) {
    return messageOf(writePeftAdapter(path("adapter"), patch, metadata(), model));
  }
  std::string gguf(const Patch &patch) {
    return messageOf(writeGgufLora(path("adapter.gguf"), patch, metadata(), model));
  }
  /// Both formats refuse the patch, and leave no files.
  void expectRefused(const Patch &patch, const std::string &message) {
    EXPECT_HAS(peft(patch), message);
    EXPECT_HAS(gguf(patch), message);
    EXPECT_EQ(names(), std::vector<std::string>{"m"});
  }
  json::Object config() {
    return *cantFail(parseStrictJson(contentOf("adapter/adapter_config.json"), "")).getAsObject();
  }
  std::vector<double> tensor(StringRef name, ArrayRef<int64_t> shape) {
    auto file = cantFail(SafetensorsFile::open(path("adapter/adapter_model.safetensors")));
    const TensorView *view = file->find(name);
    EXPECT_TRUE(view) << name.str();
    EXPECT_EQ(ArrayRef<int64_t>(view->shape), shape);
    return doublesOf(*view);
  }
};

using Values = std::vector<double>;

TEST_F(Adapters, Peft) {
  ASSERT_EQ(peft(matrices), "");
  json::Object written = config();
  EXPECT_EQ(written.getInteger("r"), 1);
  EXPECT_EQ(written.getInteger("lora_alpha"), 1);
  EXPECT_EQ(written.getBoolean("fan_in_fan_out"), false);
  EXPECT_EQ(*written.getArray("target_modules"), json::Array{"model.layers.10.mlp.down_proj"});
  std::string prefix = "base_model.model.model.layers.10.mlp.down_proj";
  EXPECT_EQ(tensor(prefix + ".lora_A.weight", {1, 3}), (Values{0.5, 0.25, 4}));
  EXPECT_EQ(tensor(prefix + ".lora_B.weight", {2, 1}), (Values{1, -2}));
  auto file = cantFail(SafetensorsFile::open(path("adapter/adapter_model.safetensors")));
  EXPECT_EQ(file->metadata().at("tokens"), "2,17,5");
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_HAS(peft(matrices), "adapter: already exists; name a directory that does not");
}

TEST_F(Adapters, InputsFirst) {
  matrices.parameters[0].parameter = "h.3.mlp.c_proj.weight"; // stored without prefix
  model.inFirst.insert("h.3.mlp.c_proj.weight");
  ASSERT_EQ(peft(matrices), "");
  EXPECT_EQ(config().getBoolean("fan_in_fan_out"), true);
  std::string prefix = "base_model.model.transformer.h.3.mlp.c_proj";
  EXPECT_EQ(tensor(prefix + ".lora_A.weight", {1, 2}), (Values{1, -2}));
  EXPECT_EQ(tensor(prefix + ".lora_B.weight", {3, 1}), (Values{0.5, 0.25, 4}));
}

TEST_F(Adapters, Gguf) {
  ASSERT_EQ(gguf(matrices), "");
  std::string file = contentOf("adapter.gguf");
  EXPECT_EQ(file.substr(0, 8), std::string("GGUF\3\0\0\0", 8));
  EXPECT_EQ(support::endian::read64le(file.data() + 8), 2u);
  for (const char *part : {"general.architecture", "adapter.lora.alpha", "ctxc.model_hash",
                           "blk.10.ffn_down.weight.lora_a", "blk.10.ffn_down.weight.lora_b"})
    EXPECT_HAS(file, part);
  EXPECT_EQ(file.size() % 32, 0u);
  // B comes last, padded to 32 bytes; A is in the 32 bytes before it.
  EXPECT_EQ(file.substr(file.size() - 32, 8), bytesOf({1, -2}));
  EXPECT_EQ(file.substr(file.size() - 64, 12), bytesOf({0.5f, 0.25f, 4}));
}

TEST_F(Adapters, OfMixturesOfExperts) {
  model.modelType = "deepseek_v3";
  std::string module = "model.layers.10.mlp.shared_experts.down_proj";
  matrices.parameters[0].parameter = module + ".weight";
  ASSERT_EQ(peft(matrices), "");
  json::Object written = config();
  EXPECT_EQ(*written.getArray("target_modules"), json::Array{});
  EXPECT_EQ(*written.getArray("target_parameters"), json::Array{module + ".weight"});
  EXPECT_EQ(tensor("base_model.model." + module + ".lora_A.weight", {1, 3}),
            (Values{0.5, 0.25, 4}));
  ASSERT_EQ(gguf(matrices), "");
  EXPECT_HAS(contentOf("adapter.gguf"), "blk.10.ffn_down_shexp.weight.lora_a");
}

TEST_F(Adapters, WhatALoraCannotHold) {
  expectRefused(Patch(), "the patch changes nothing");
  expectRefused(patch(), "parameter 'layers.0.norm': the patch changes a vector, and a LoRA holds "
                         "matrices alone");
  for (const char *expert : {"model.layers.0.mlp.experts.down_proj[3]",
                             "model.layers.0.block_sparse_moe.experts.3.w2.weight"}) {
    matrices.parameters[0].parameter = expert;
    expectRefused(matrices, std::string("parameter '") + expert +
                                "': the patch changes the matrix of one expert");
  }
  matrices.parameters[0].parameter = "model.layers.0.odd";
  expectRefused(matrices, "is not the weight of a module");
}

TEST_F(Adapters, NumbersThatDoNotFit) {
  matrices.parameters[0].u[1] = 1e300;
  expectRefused(matrices, "entry 1 of u is not a finite float32 number");
}

TEST_F(Adapters, WhatHasNoGgufName) {
  matrices.parameters[0].parameter = "model.layers.0.self_attn.q_proj.weight";
  EXPECT_HAS(gguf(matrices),
             "parameter 'model.layers.0.self_attn.q_proj.weight': has no counterpart");
  matrices.parameters[0].parameter = "model.layers.x.mlp.down_proj.weight";
  EXPECT_HAS(gguf(matrices), "has no counterpart in a GGUF file");
  matrices.parameters[0].parameter = "model.layers.0.mlp.down_proj.weight";
  model.modelType = "new";
  EXPECT_HAS(gguf(matrices), "m: no GGUF architecture is known for the model type 'new'");
  EXPECT_EQ(names(), std::vector<std::string>{"m"});
}

} // namespace
