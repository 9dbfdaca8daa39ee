#include "PrefixAdapter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

Error ctxc::checkPrefixTuning(const VirtualEntries &entries) {
  const KeysAndValues &first = entries.attentions.front();
  for (auto [i, each] : enumerate(entries.attentions))
    if (each.heads != first.heads || each.keyWidth != first.keyWidth ||
        each.valueWidth != first.keyWidth)
      return makeError("PEFT's prefix tuning has keys and values of one shape for all layers; "
                       "attention " +
                       Twine(i + 1) + " has " + Twine(each.heads) + " heads with keys of " +
                       Twine(each.keyWidth) + " numbers and values of " + Twine(each.valueWidth) +
                       ", expected " + Twine(first.heads) + " heads of " + Twine(first.keyWidth));
  return Error::success();
}

Expected<TensorSource> ctxc::prefixTensor(const VirtualEntries &entries) {
  if (Error error = checkPrefixTuning(entries))
    return std::move(error);
  const int64_t count = entries.count(), width = entries.attentions.front().keyWidth;
  std::vector<float> rows;
  rows.reserve(entries.size());
  for (int64_t entry = 0; entry < count; ++entry)
    for (const KeysAndValues &each : entries.attentions)
      for (const std::vector<float> *numbers : {&each.keys, &each.values})
        for (int64_t head = 0; head < each.heads; ++head)
          append_range(rows, ArrayRef(*numbers).slice((head * count + entry) * width, width));
  const int64_t size = rows.size() / count;
  return TensorSource{
      "prompt_embeddings", DType::F32, {count, size}, [rows = std::move(rows)](raw_ostream &os) {
        os.write(reinterpret_cast<const char *>(rows.data()), rows.size() * sizeof(float));
        return Error::success();
      }};
}

json::Object ctxc::prefixConfig(const VirtualEntries &entries, const AdapterModel &model) {
  const KeysAndValues &first = entries.attentions.front();
  return json::Object{{"peft_type", prefixTuning},
                      {"task_type", "CAUSAL_LM"},
                      {"base_model_name_or_path", model.directory},
                      {"inference_mode", true},
                      {"num_virtual_tokens", entries.count()},
                      {"token_dim", first.heads * first.keyWidth},
                      {"num_transformer_submodules", 1},
                      {"num_attention_heads", first.heads},
                      {"num_layers", int64_t(entries.attentions.size())},
                      {"encoder_hidden_size", first.heads * first.keyWidth},
                      {"prefix_projection", false}};
}

Expected<VirtualEntries> ctxc::readPrefix(StringRef directory, const json::Object &config,
                                          const SafetensorsFile &file) {
  auto fail = [&](const Twine &message) { return makeError(directory + ": " + message); };
  // What PEFT computed with a projection is stored behind it.
  static constexpr StringLiteral known[] = {"peft_type",
                                            "task_type",
                                            "base_model_name_or_path",
                                            "inference_mode",
                                            "num_virtual_tokens",
                                            "token_dim",
                                            "num_transformer_submodules",
                                            "num_attention_heads",
                                            "num_layers",
                                            "encoder_hidden_size",
                                            "prefix_projection",
                                            "revision",
                                            "auto_mapping",
                                            "peft_version"};
  for (const auto &[key, value] : config)
    if (!is_contained(known, StringRef(key)))
      return fail("adapter_config.json: found the key " + quoted(StringRef(key)) +
                  ", which is not known for " + prefixTuning);
  int64_t numbers[4];
  for (auto [name, number] : zip(ArrayRef<StringLiteral>{"num_virtual_tokens", "token_dim",
                                                         "num_attention_heads", "num_layers"},
                                 numbers)) {
    std::optional<int64_t> found = config.getInteger(name);
    if (!found || *found < 1 || *found > (int64_t(1) << 24))
      return fail("adapter_config.json: expected a number from 1 on for " + name);
    number = *found;
  }
  auto [count, wide, heads, layers] = numbers;
  if (wide % heads != 0)
    return fail("adapter_config.json: found token_dim " + Twine(wide) +
                ", expected a multiple of " + Twine(heads) + ", num_attention_heads");
  const TensorView *tensor = file.find("prompt_embeddings");
  if (!tensor || file.tensors().size() != 1)
    return fail("adapter_model.safetensors: expected the tensor 'prompt_embeddings' alone, as "
                "PEFT's prefix tuning has it");
  if (tensor->shape != SmallVector<int64_t, 4>{count, 2 * layers * wide})
    return fail("tensor 'prompt_embeddings': found a shape of " + shapeText(tensor->shape) +
                ", expected " + shapeText({count, 2 * layers * wide}) +
                ": a key and a value of every layer for each of num_virtual_tokens");
  if (!isFloating(tensor->dtype))
    return fail("tensor 'prompt_embeddings': expected numbers of a floating type");
  if (Error error = checkFinite(*tensor))
    return std::move(error);
  std::vector<float> rows(tensor->elements());
  readFloats(tensor->dtype, tensor->stored(), rows);
  if (!all_of(rows, [](float x) { return std::isfinite(x); }))
    return fail("tensor 'prompt_embeddings': has a number that is not finite as float32");
  VirtualEntries entries;
  const int64_t width = wide / heads;
  for (int64_t layer = 0; layer < layers; ++layer) {
    KeysAndValues &each =
        entries.attentions.emplace_back(KeysAndValues{heads, count, width, width, {}, {}});
    std::vector<float> *both[] = {&each.keys, &each.values};
    for (auto [i, numbers] : enumerate(both))
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t entry = 0; entry < count; ++entry)
          append_range(*numbers,
                       ArrayRef(rows).slice(
                           ((entry * layers + layer) * 2 + i) * wide + head * width, width));
  }
  return entries;
}
