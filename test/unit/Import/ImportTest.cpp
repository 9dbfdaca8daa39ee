// Directories and files that can be imported, and the modules that they give.
#include "Fixture.h"
#include "ctxc/Program/SliceName.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

using Import = ImportTest;

struct ImportGolden : testing::TestWithParam<std::string> {};

TEST_P(ImportGolden, ImportsVerifiesAndParsesBack) {
  mlir::MLIRContext context;
  Expected<ImportedModel> model = importModel(golden(GetParam()), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  EXPECT_TRUE(succeeded(mlir::verify(*model->module)));
  EXPECT_TRUE(model->checkpoint);
  EXPECT_TRUE(model->warnings.empty());

  std::string text;
  raw_string_ostream os(text);
  printModel(*model->module, os);
  auto back = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  ASSERT_TRUE(back);
  std::string again, plain;
  raw_string_ostream(again) << *back;
  raw_string_ostream(plain) << *model->module;
  EXPECT_EQ(again, plain);
}

TEST_P(ImportGolden, EveryParameterHasItsStoredTypeAndEveryTensorIsRead) {
  mlir::MLIRContext context;
  Expected<ImportedModel> model = importModel(golden(GetParam()), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  size_t uses = 0;
  auto checkStored = [&](const std::string &name, ArrayRef<int64_t> shape) {
    const TensorView *view = model->checkpoint->find(name);
    ASSERT_TRUE(view) << name;
    // A convolution's taps are stored with an axis of one.
    auto withoutOnes = [](ArrayRef<int64_t> dims) {
      return to_vector(make_filter_range(dims, [](int64_t dim) { return dim != 1; }));
    };
    if (StringRef(name).contains("conv1d"))
      EXPECT_EQ(withoutOnes(shape), withoutOnes(view->shape)) << name;
    else
      EXPECT_EQ(shape, ArrayRef(view->shape)) << name;
    ++uses;
  };
  auto check = [&](const std::string &name, mlir::Value value) {
    auto type = cast<mlir::RankedTensorType>(value.getType());
    EXPECT_TRUE(type.getElementType().isF32()) << name;
    if (!isBankName(name))
      return checkStored(name, type.getShape());
    for (int64_t i = 0; i < type.getDimSize(0); ++i)
      checkStored(sliceName(name, i), type.getShape().drop_front());
  };
  model->module->walk([&](xf::LayerOp layer) {
    auto block =
        mlir::SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr());
    ASSERT_TRUE(block);
    block.walk(
        [&](xf::ParamOp param) { check(layer.getStoredName(param.getName()), param.getResult()); });
  });
  auto xfModel = *model->module->getOps<xf::ModelOp>().begin();
  for (auto param : xfModel.getBody().getOps<xf::ParamOp>())
    check(param.getName().str(), param.getResult());
  size_t unread = llvm::count_if(model->checkpoint->tensors(), [](const TensorView &view) {
    StringRef name = view.name;
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.contains(".pooler.") || name.starts_with("cls.seq_relationship.");
  });
  EXPECT_EQ(unread, GetParam() == "gpt2-bare" ? 6u : GetParam() == "bert-older" ? 4u : 0u);
  EXPECT_EQ(uses + unread, model->checkpoint->tensors().size());
}

TEST_P(ImportGolden, EveryOpHasALocation) {
  mlir::MLIRContext context;
  Expected<ImportedModel> model = importModel(golden(GetParam()), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  model->module->walk([](mlir::Operation *op) {
    EXPECT_TRUE(op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
        << op->getName().getStringRef().str();
  });
}

INSTANTIATE_TEST_SUITE_P(Goldens, ImportGolden, testing::ValuesIn(allGoldens()), goldenTestName);
INSTANTIATE_TEST_SUITE_P(Mixers, ImportGolden, testing::ValuesIn(allMixers()), goldenTestName);

TEST_F(Import, BothConfigGenerationsGiveTheSameModel) {
  for (StringRef name : {"gemma3", "llama3-rope", "falcon"})
    EXPECT_EQ(imported(golden(name)), imported(golden(name.str() + "-older-config")));
  EXPECT_EQ(imported(golden("mixtral")), imported(golden("mixtral-sharded")));
}

TEST_F(Import, RopeKeysOfTransformers4) {
  for (StringRef name : {"gemma2", "cohere", "olmo2", "phi3", "mixtral", "qwen2-moe"}) {
    json::Object config = configOf(name);
    json::Object rope = std::move(*config["rope_parameters"].getAsObject());
    std::string newer = importedWith(name, {}), older;
    if (json::Value *part = rope.get("partial_rotary_factor"))
      older = importedWith(name, {{"rope_parameters", nullptr},
                                  {"rope_theta", *rope.get("rope_theta")},
                                  {"rope_scaling", nullptr},
                                  {"partial_rotary_factor", *part}});
    else
      older = importedWith(name, {{"rope_parameters", nullptr},
                                  {"rope_theta", *rope.get("rope_theta")},
                                  {"rope_scaling", nullptr}});
    // An importer's rope has its base; a described one's frequencies are numbers.
    const bool isDescribed = name == "cohere" || name == "olmo2";
    EXPECT_HAS(newer, isDescribed ? "settings {rope = dense<[1.0" : "#xf.rope<base = ");
    EXPECT_EQ(newer, older) << name.str();
  }
  EXPECT_EQ(importedWith("gemma2", {}), importedWith("gemma2", {{"layer_types", nullptr}}));
}

TEST_F(Import, ANullCapIsOffAndAnAbsentOneIsTheFamilys) {
  std::string capped = importedWith("gemma2", {});
  EXPECT_HAS(capped, "softcap 1.500000e+00 window");
  EXPECT_HAS(capped, "xf.softcap %logits at 6.000000e+00");
  std::string off = importedWith(
      "gemma2", {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  EXPECT_EQ(occurrences(off, "softcap"), 0);
  json::Object config = configOf("gemma2");
  config.erase("attn_logit_softcapping");
  config.erase("final_logit_softcapping");
  writeConfig(std::move(config));
  ImportOptions options;
  options.needWeights = false;
  std::string absent = imported(directory(), options);
  EXPECT_HAS(absent, "softcap 5.000000e+01 window");
  EXPECT_HAS(absent, "xf.softcap %logits at 3.000000e+01");
}

TEST_F(Import, OlderFormsOfRopeScaling) {
  std::string typed =
      importedWith("llama", {{"rope_parameters", nullptr},
                             {"rope_theta", 7000.0},
                             {"rope_scaling", json::Object{{"type", "linear"}, {"factor", 4}}}});
  EXPECT_HAS(typed, "#xf.rope<base = 7.000000e+03, dims = 18, linear = 4.000000e+00>");
  EXPECT_HAS(importedWith("llama", {{"rope_parameters", nullptr}}),
             "#xf.rope<base = 1.000000e+04, dims = 18>");
  std::string theta = importedWith("llama", {{"rope_theta", 5.0}});
  EXPECT_HAS(theta, "base = 7.000000e+03"); // the newer form takes precedence
}

TEST_F(Import, LayersOfOneStructureShareABlockAndDifferInSettings) {
  std::string text = imported(golden("gemma3"));
  EXPECT_EQ(occurrences(text, "xf.block"), 1);
  EXPECT_EQ(occurrences(text, "xf.layer @gemma3("), 6);
  EXPECT_EQ(occurrences(text, "{rotary = #xf.rope<base = 9.000000e+02, dims = 10>, window = 7 : "
                              "i64}"),
            5);
  EXPECT_EQ(occurrences(text, "{rotary = #xf.rope<base = 5.000000e+04, dims = 10, linear = "
                              "3.000000e+00>, window = 0 : i64}"),
            1);
}

using Layers = std::vector<std::vector<int64_t>>;

/// The indices of the layers of each block, in the order of the blocks.
Layers layersByBlock(StringRef text) {
  Layers result;
  StringMap<size_t> blocks;
  int64_t layer = 0;
  for (size_t at = 0; (at = text.find("xf.layer @", at)) != StringRef::npos; ++layer) {
    StringRef name = text.substr(at += 10).take_until([](char c) { return c == '('; });
    auto [it, isNew] = blocks.try_emplace(name, result.size());
    if (isNew)
      result.emplace_back();
    result[it->second].push_back(layer);
  }
  return result;
}

TEST_F(Import, DenseLayersAndMixturesHaveABlockEach) {
  EXPECT_EQ(layersByBlock(imported(golden("qwen2-moe"))), (Layers{{0, 2}, {1}}));
  EXPECT_EQ(layersByBlock(imported(golden("qwen2-moe-normed"))), (Layers{{0, 2}, {1, 3}}));
  auto with = [&](Changes changes) { return layersByBlock(importedWith("qwen2-moe", changes)); };
  EXPECT_EQ(with({{"num_hidden_layers", 7}, {"layer_types", nullptr}, {"decoder_sparse_step", 3}}),
            (Layers{{0, 1, 3, 4, 6}, {2, 5}}));
  EXPECT_EQ(with({{"mlp_only_layers", nullptr}}), (Layers{{0, 1, 2}}));
  EXPECT_EQ(with({{"num_experts", 0}}), (Layers{{0, 1, 2}}));
}

TEST_F(Import, QwensMixturesWeighAndSeeAsTheConfigSays) {
  std::string plain = imported(golden("qwen2-moe")), normed = imported(golden("qwen2-moe-normed"));
  EXPECT_EQ(occurrences(plain, "xf.normalize sum"), 0);
  EXPECT_EQ(occurrences(normed, "xf.normalize sum"), 1);
  EXPECT_EQ(occurrences(plain, "xf.bias"), 6); // q, k and v of two blocks
  EXPECT_EQ(occurrences(normed, "xf.bias"), 0);
  EXPECT_EQ(occurrences(plain, "window"), 0);
  // Of the layers 0 to 3, those with an even index below max_window_layers = 2.
  EXPECT_EQ(occurrences(normed, "{window = 6 : i64}"), 1);
  EXPECT_EQ(occurrences(normed, "{window = 0 : i64}"), 3);
}

TEST_F(Import, Qwen3sMixturesAreWhereTheConfigSays) {
  EXPECT_EQ(layersByBlock(imported(golden("qwen3-moe"))), (Layers{{0, 2}, {1, 3}}));
  EXPECT_EQ(layersByBlock(imported(golden("qwen3-moe-fused"))), (Layers{{0, 2}, {1}}));
  std::string windows = imported(golden("qwen3-moe"));
  EXPECT_EQ(occurrences(windows, "{window = 6 : i64}"), 4);
  std::string none = importedWith("qwen3-moe", {{"use_sliding_window", false}});
  EXPECT_EQ(occurrences(none, "window"), 0);
  EXPECT_EQ(occurrences(none, "xf.top_k"), 1);
  EXPECT_EQ(layersByBlock(importedWith("qwen3-moe", {{"num_experts", 0}})), (Layers{{0, 1, 2, 3}}));
}

TEST_F(Import, TheNumberOfExpertsHasTwoNames) {
  for (StringRef name : {"olmoe", "qwen3-moe"}) {
    json::Value count = *configOf(name).get("num_experts");
    EXPECT_EQ(imported(golden(name)),
              importedWith(name, {{"num_experts", nullptr}, {"num_local_experts", count}}))
        << name.str();
    EXPECT_HAS(importedWith(name, {{"num_local_experts", 3}}),
               "key 'num_local_experts' = 3 is not understood");
  }
}

TEST_F(Import, OlmoeClipsBehindItsNorms) {
  std::string text = imported(golden("olmoe"));
  EXPECT_EQ(occurrences(text, "xf.clamp"), 3);
  EXPECT_LT(text.find("xf.normalize rms %q"), text.find("xf.clamp %q_n"));
  EXPECT_EQ(occurrences(importedWith("olmoe", {{"clip_qkv", nullptr}}), "xf.clamp"), 0);
}

TEST_F(Import, DeepseekIsAsTheConfigSays) {
  std::string text = imported(golden("deepseek-v3"));
  EXPECT_EQ(layersByBlock(text), (Layers{{0}, {1, 2}}));
  EXPECT_EQ(occurrences(text, "xf.top_k %s_corrected k 3 groups 4 keep 2"), 1);
  EXPECT_EQ(occurrences(text, "xf.param \"mlp.gate.e_score_correction_bias\" frozen"), 1);
  EXPECT_EQ(occurrences(text, "xf.gather %s["), 1);
  EXPECT_EQ(occurrences(text, "xf.rotary interleaved"), 4);
  // (0.1 · 0.9 ln 4 + 1)² / √16, and both q and k times (0.1 · 0.6 ln 4 + 1) / (0.1 · 0.9 ln 4 +
  // 1).
  EXPECT_EQ(occurrences(text, "scale 0.31627"), 2);
  EXPECT_EQ(occurrences(text, "amplitude 0.96302"), 4);

  std::string plain = imported(golden("deepseek-v3-plain-fused"));
  EXPECT_EQ(occurrences(plain, "xf.rotary half"), 2);
  EXPECT_EQ(occurrences(plain, "q_proj.weight"), 1);
  EXPECT_EQ(occurrences(plain, "groups"), 0);
  EXPECT_EQ(occurrences(plain, "xf.normalize sum"), 0);
  EXPECT_EQ(layersByBlock(importedWith("deepseek-v3", {{"first_k_dense_replace", 0}})),
            (Layers{{0, 1, 2}}));
}

TEST_F(Import, AnExpertStoredInAnotherTypeIsRefused) {
  StoredTensorMap tensors = tensorsOf("mixtral");
  StoredTensor &w = tensors.at("model.layers.1.block_sparse_moe.experts.3.w2.weight");
  w.dtype = DType::BF16;
  w.bytes.resize(w.bytes.size() / 2);
  writeConfig(configOf("mixtral"));
  writeTensors(tensors);
  std::string message = imported(directory());
  EXPECT_HAS(message, "'model.layers.1.block_sparse_moe.experts.3.w2.weight' is not stored as the "
                      "same type as 'model.layers.1.block_sparse_moe.experts.0.w2.weight'");
  EXPECT_EQ(occurrences(message, "not stored as"), 1);
  ImportOptions options;
  options.storage = DType::BF16;
  EXPECT_HAS(imported(directory(), options), "tensor<5x33x22xbf16>");
}

TEST_F(Import, AMissingExpertIsNamed) {
  StoredTensorMap tensors = tensorsOf("mixtral");
  tensors.erase("model.layers.0.block_sparse_moe.experts.4.w1.weight");
  writeConfig(configOf("mixtral"));
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "has no tensor 'model.layers.0.block_sparse_moe.experts.4.w1."
                                    "weight'; expected [22, 33]");
}

TEST_F(Import, ALayerStoredInAnotherTypeHasABlockOfItsOwn) {
  StoredTensorMap tensors = tensorsOf("llama");
  StoredTensor &up = tensors.at("model.layers.1.mlp.up_proj.weight");
  up.dtype = DType::BF16;
  up.bytes.resize(up.bytes.size() / 2);
  writeConfig(configOf("llama"));
  writeTensors(tensors);
  std::string text = imported(directory());
  EXPECT_EQ(occurrences(text, "xf.block"), 2);
  EXPECT_EQ(occurrences(text, "xf.layer @llama("), 2);
  EXPECT_EQ(occurrences(text, "xf.layer @llama_2("), 1);
  EXPECT_EQ(occurrences(text, "\"mlp.up_proj.weight\" : tensor<62x54xbf16>"), 1);
}

TEST_F(Import, StorageAndConfigTypes) {
  ImportOptions bf16;
  bf16.storage = DType::BF16;
  std::string text = imported(golden("gemma3"), bf16);
  EXPECT_EQ(occurrences(text, "xf.block"), 1);
  for (StringRef line : llvm::split(text, '\n'))
    if (line.contains("xf.param"))
      EXPECT_TRUE(line.ends_with("xbf16>")) << line.str();
  EXPECT_HAS(importedWith("llama", {{"dtype", "bfloat16"}}), "tensor<62x54xbf16>");
  EXPECT_HAS(importedWith("llama", {{"dtype", nullptr}, {"torch_dtype", "float16"}}),
             "tensor<62x54xf16>");
  EXPECT_HAS(importedWith("llama", {{"dtype", nullptr}}), "tensor<62x54xf32>");
}

TEST_F(Import, WithoutWeightsOnlyWhereTheyAreNotNeeded) {
  writeConfig(configOf("falcon"));
  EXPECT_HAS(imported(directory()), "has neither model.safetensors nor");
  ImportOptions check;
  check.needWeights = false;
  Expected<ImportedModel> model = importModel(directory(), context, check);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  EXPECT_FALSE(model->checkpoint);
}

TEST_F(Import, TiedHeads) {
  json::Object config = configOf("llama");
  config["tie_word_embeddings"] = true;
  writeConfig(std::move(config));
  StoredTensorMap tensors = tensorsOf("llama");
  writeTensors(tensors); // both exist and differ: two parameters
  EXPECT_HAS(imported(directory()), "xf.param \"lm_head.weight\"");
  Expected<ImportedModel> model = importModel(directory(), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  ASSERT_EQ(model->warnings.size(), 1u);
  EXPECT_HAS(model->warnings[0], "config.json: key 'tie_word_embeddings' = true, and the stored "
                                 "head is not the embedding; the stored one is used");

  tensors.at("lm_head.weight") = tensors.at("model.embed_tokens.weight");
  writeTensors(tensors);
  EXPECT_EQ(occurrences(imported(directory()), "lm_head"), 0);

  tensors.erase("model.embed_tokens.weight"); // the other one stands for both
  writeTensors(tensors);
  std::string text = imported(directory());
  EXPECT_HAS(text, "%E = xf.param \"lm_head.weight\"");
  EXPECT_HAS(text, "xf.linear %E * %n");
}

TEST_F(Import, TheTextModelOfGemma3WithImages) {
  json::Object text = configOf("gemma3");
  writeConfig(json::Object{{"model_type", "gemma3"},
                           {"vision_config", json::Object{{"hidden_size", 8}}},
                           {"mm_tokens_per_image", 4},
                           {"text_config", std::move(text)}});
  StoredTensorMap tensors;
  for (auto &[name, tensor] : tensorsOf("gemma3"))
    tensors["language_model." + name] = tensor;
  tensors["vision_tower.x"] = {DType::F32, {1}, bytesOf({0})};
  writeTensors(tensors);
  Expected<ImportedModel> model = importModel(directory(), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  EXPECT_TRUE(model->warnings.empty());
  EXPECT_HAS(imported(directory()), "at \"language_model.model.layers.5.\"");
}

TEST_F(Import, SoftcapOfTheLogits) {
  EXPECT_HAS(importedWith("gemma3", {{"final_logit_softcapping", 30}}),
             "xf.softcap %logits at 3.000000e+01");
  // Gemma 3's config contains this key, but the model does not apply it.
  EXPECT_EQ(importedWith("gemma3", {{"attn_logit_softcapping", 50}}), importedWith("gemma3", {}));
}

TEST_F(Import, MlirFiles) {
  std::string block = "xf.block @b(%x: tensor<2xf32>) -> tensor<2xf32> { xf.yield %x : "
                      "tensor<2xf32> }\n";
  EXPECT_HAS(imported(write("block.mlir", block)), "xf.block @b(");
  // Names that the reader chose are kept.
  EXPECT_EQ(imported(write("again.mlir", imported(golden("falcon")))), imported(golden("falcon")));
  EXPECT_HAS(imported(write("none.mlir", "module {}")),
             "none.mlir: has neither an xf.model nor an xf.block");
  testing::internal::CaptureStderr();
  EXPECT_HAS(imported(write("bad.mlir", "xf.block @b(")), "bad.mlir: is not a valid module");
  EXPECT_HAS(testing::internal::GetCapturedStderr(), "bad.mlir\":1:");
  std::string model = "{ %t = xf.token : tensor<i32>\n %E = xf.param \"E\" : tensor<3x2xf32>\n %x "
                      "= xf.embed %E[%t] : tensor<3x2xf32>, tensor<i32>\n xf.yield %x : "
                      "tensor<2xf32> }\n";
  EXPECT_HAS(imported(write("one.mlir", "xf.model @a " + model)), "xf.model @a");
  EXPECT_HAS(imported(write("two.mlir", "xf.model @a " + model + "xf.model @b " + model)),
             "two.mlir: has 2 xf.model ops; expected at most one");
}

TEST_F(Import, AnythingElseIsAnError) {
  EXPECT_HAS(imported(path("absent")), "absent: no such file or directory; expected a Hugging Face "
                                       "directory, a .gguf, .ctxc, .pt2 or .mlir file");
  EXPECT_HAS(imported(write("model.onnx", "x")), "model.onnx: is not a model that can be read");
  EXPECT_HAS(imported(write("model.gguf", "GGU")), "model.gguf: is not a GGUF file");
  EXPECT_HAS(imported(directory()), "has no config.json");
  write("config.json", "[1]");
  EXPECT_HAS(imported(directory()), "config.json: expected a JSON object");
  ImportOptions i32;
  i32.storage = DType::I32;
  EXPECT_HAS(imported(golden("llama"), i32), "I32 is no storage type of weights");
}

} // namespace
