// One cause, one error: of every family, for each kind of cause.
#include "Fixture.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

/// The number of the layer that a tensor is of.
std::optional<int64_t> layerOf(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  int64_t layer;
  for (StringRef part : parts)
    if (!part.getAsInteger(10, layer))
      return layer;
  return std::nullopt;
}

struct TensorProblems : ImportTest, testing::WithParamInterface<std::string> {
  void SetUp() override {
    TempDirectory::SetUp();
    tensors = tensorsOf(GetParam());
    for (const auto &[name, tensor] : tensors)
      if (isQuantized(tensor.dtype))
        GTEST_SKIP() << name << " has a type that a safetensors file does not";
    writeConfig(configOf(GetParam()));
    writeTensors(tensors);
    ASSERT_FALSE(StringRef(imported(directory())).starts_with("error"));
  }

  /// The message about these tensors, which must be one.
  std::string problemOf(const StoredTensorMap &changed) {
    writeTensors(changed);
    std::string message = imported(directory());
    EXPECT_TRUE(StringRef(message).starts_with("error: ")) << message;
    EXPECT_EQ(StringRef(message).count('\n'), 0u) << message;
    return message;
  }

  StoredTensorMap tensors;
};

TEST_P(TensorProblems, AnotherPrefix) {
  StoredTensorMap changed;
  for (const auto &[name, tensor] : tensors)
    changed["module." + name] = tensor;
  EXPECT_HAS(problemOf(changed), " tensors are stored with the prefix 'module.");
}

TEST_P(TensorProblems, MissingLayers) {
  StoredTensorMap changed;
  for (const auto &[name, tensor] : tensors)
    if (layerOf(name).value_or(0) == 0)
      changed[name] = tensor;
  if (changed.size() == tensors.size())
    GTEST_SKIP() << "it has one layer";
  std::string message = problemOf(changed);
  EXPECT_HAS(message, ": has no tensor of layer");
  EXPECT_HAS(message, "the last layer that it has is 0");
}

TEST_P(TensorProblems, ALayerInTheMiddle) {
  StoredTensorMap changed;
  for (const auto &[name, tensor] : tensors)
    if (layerOf(name) != 1)
      changed[name] = tensor;
  if (changed.size() == tensors.size())
    GTEST_SKIP() << "it has one layer";
  EXPECT_HAS(problemOf(changed), ": has no tensor of layer 1 (");
}

TEST_P(TensorProblems, OneKindOfTensorMissing) {
  // The last tensor of layer 0, and its namesakes.
  std::string end;
  for (const auto &[name, tensor] : tensors)
    if (layerOf(name) == 0)
      end = StringRef(name).rsplit("0.").second.str();
  StoredTensorMap changed = tensors;
  for (const auto &[name, tensor] : tensors)
    if (layerOf(name) && StringRef(name).ends_with("." + end))
      changed.erase(name);
  EXPECT_HAS(problemOf(changed), end);
}

TEST_P(TensorProblems, WeightsOfAnotherVocabulary) {
  json::Object config = configOf(GetParam());
  json::Object *text = config.getObject("text_config");
  json::Object &sizes = text ? *text : config;
  int64_t words = sizes.getInteger("vocab_size").value_or(0);
  sizes["vocab_size"] = words + 8;
  writeConfig(std::move(config));
  std::string message = problemOf(tensors), size = std::to_string(words + 8);
  bool isOne = message.find("; expected [" + size) != std::string::npos;
  EXPECT_TRUE(isOne ||
              message.find("where it gives " + size + " ('vocab_size')") != std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(Goldens, TensorProblems, testing::ValuesIn(allGoldens()), goldenTestName);

/// A base model, without its head or with another one, of each family.
struct BaseModels : ImportTest, testing::WithParamInterface<std::string> {};

TEST_P(BaseModels, EndWithTheLastHiddenState) {
  StoredTensorMap tensors = tensorsOf(GetParam()), base;
  json::Object config = configOf(GetParam());
  if (llvm::any_of(tensors, [](auto &each) { return isQuantized(each.second.dtype); }))
    GTEST_SKIP() << "it has a type that a safetensors file does not";
  std::string prefix;
  for (const auto &[name, tensor] : tensors)
    if (auto layer = layerOf(name); layer && prefix.empty())
      prefix = StringRef(name).split('.').first.str() + ".";
  for (const auto &[name, tensor] : tensors)
    if (StringRef(name).starts_with(prefix))
      base[name] = tensor;
  if (prefix == "h.")
    GTEST_SKIP() << "it is stored without a prefix";
  config["architectures"] = json::Array{"SomeModel"};
  writeConfig(json::Object(config));
  writeTensors(base);
  std::string prefixed = imported(directory());
  EXPECT_HAS(prefixed, "attributes {headless}");
  StoredTensorMap bare;
  for (const auto &[name, tensor] : base)
    bare[name.substr(prefix.size())] = tensor;
  writeTensors(bare);
  EXPECT_HAS(imported(directory()), "attributes {headless}");

  config["architectures"] = json::Array{"SomeForSequenceClassification"};
  writeConfig(json::Object(config));
  base["score.weight"] = {DType::F32, {2, 1}, std::string(8, '\0')};
  writeTensors(base);
  auto model = importModel(directory(), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  ASSERT_EQ(model->warnings.size(), 1u);
  EXPECT_HAS(model->warnings[0], "the head of SomeForSequenceClassification (1 tensor, such as "
                                 "'score.weight') is not read");

  // What has a head by its name lacks it.
  base.erase("score.weight");
  config["architectures"] = json::Array{"SomeForCausalLM"};
  writeConfig(json::Object(config));
  writeTensors(base);
  std::string message = imported(directory());
  bool isTied = !StringRef(message).starts_with("error: ");
  EXPECT_TRUE(isTied || StringRef(message).count('\n') == 0) << message;
  EXPECT_EQ(StringRef(message).count("headless"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Goldens, BaseModels, testing::ValuesIn(allGoldens()), goldenTestName);

} // namespace
