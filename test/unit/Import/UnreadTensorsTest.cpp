// Stored tensors that no equation reads: refused, but for those that are known to be of no effect.
#include "Fixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

using UnreadTensors = ImportTest;

TEST_F(UnreadTensors, LayersThatPredictFurtherTokensAreLeftAlone) {
  StoredTensorMap tensors = tensorsOf("deepseek-v3");
  StoredTensor norm = tensors.at("model.norm.weight");
  tensors["model.layers.3.enorm.weight"] = norm;
  writeConfig(configOf("deepseek-v3"));
  writeTensors(tensors);
  mlir::MLIRContext context;
  Expected<ImportedModel> model = importModel(directory(), context);
  ASSERT_TRUE(bool(model)) << toString(model.takeError());
  EXPECT_TRUE(model->warnings.empty());
  tensors["model.layers.4.enorm.weight"] = norm; // one more than the config names
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "has 1 tensor that this family does not read: "
                                    "'model.layers.4.enorm.weight' [");
}

TEST_F(UnreadTensors, TensorsThatTheFamilyDoesNotReadAreRefused) {
  StoredTensorMap tensors = tensorsOf("llama");
  StoredTensor one = {DType::F32, {1}, bytesOf({1})};
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = one; // harmless
  writeConfig(configOf("llama"));
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "module {");
  for (int64_t i = 0; i < 3; ++i) // as in BitNet
    tensors["model.layers." + std::to_string(i) + ".self_attn.attn_sub_norm.weight"] = one;
  tensors["score.weight"] = one;
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()),
             ": has 4 tensors that this family does not read: 3 of "
             "'model.layers.N.self_attn.attn_sub_norm.weight' [1], 'score.weight' [1]; expected "
             "none, since the model may be of another family. Correct 'model_type', or remove the "
             "tensors if they change no number");
  for (char letter = 'a'; letter < 'g'; ++letter)
    tensors[std::string(1, letter)] = one;
  writeTensors(tensors);
  EXPECT_HAS(imported(directory()), "has 10 tensors that this family does not read: 'a' [1], 'b' "
                                    "[1], 'c' [1], 'd' [1], 'e' [1], others; expected none");
}

TEST_F(UnreadTensors, MasksThatWereOnceStoredAreLeftAlone) {
  for (StringRef name : {"gpt2", "gpt-neox"}) {
    StoredTensorMap tensors = tensorsOf(name);
    StringRef mask =
        name == "gpt2" ? "transformer.h.0.attn.bias" : "gpt_neox.layers.0.attention.bias";
    tensors[mask.str()] = {DType::F32, {1, 1, 1, 1}, bytesOf({1})};
    writeConfig(configOf(name));
    writeTensors(tensors);
    EXPECT_HAS(imported(directory()), "module {");
  }
}

} // namespace
