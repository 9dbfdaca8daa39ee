#include "Architecture.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Count.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

static StringRef className(const json::Object &config) {
  const json::Array *names = config.getArray("architectures");
  return names && !names->empty() ? names->front().getAsString().value_or("") : "";
}

Task hf::taskOf(const json::Object &config) {
  StringRef name = className(config);
  for (StringRef part : {"LMHead", "ForCausalLM", "ForMaskedLM", "ForPreTraining",
                         "ForConditionalGeneration", "ForSeq2SeqLM"})
    if (name.contains(part))
      return Task::Tokens;
  if (name.ends_with("Model"))
    return Task::Base;
  for (StringRef part : {"ForSequenceClassification", "ForTokenClassification",
                         "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction"})
    if (name.ends_with(part))
      return Task::Other;
  return Task::Unknown;
}

bool hf::readsHead(Task task, const StoredTensors &tensors, bool isStored, bool isEmbedding) {
  if (isStored)
    return true;
  if (task == Task::Unknown)
    return isEmbedding || !tensors.areStored();
  return task == Task::Tokens;
}

bool OtherHead::takes(StringRef name) {
  if (!isThere || name.starts_with(prefix))
    return false;
  if (count++ == 0)
    one = name.str();
  return true;
}

std::string OtherHead::warning(const json::Object &config, StringRef path) const {
  if (count == 0)
    return "";
  return (path + ": the head of " + className(config) + " (" + counted(count, "tensor") +
          ", such as " + quoted(one) + ") is not read: the model ends with its last hidden state")
      .str();
}

std::string hf::ownHeadWarning(StringRef path) {
  return (path + ": key 'tie_word_embeddings' = true, and the stored head is not the embedding; "
                 "the stored one is used, as transformers does. Set the key to false, or remove "
                 "the head")
      .str();
}
