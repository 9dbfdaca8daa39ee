#include "PrefixAdapter.h"
#include "ctxc/Checkpoint/ConfigReader.h"
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

static constexpr KeyRule keysOfPrefixTuning[] = {
    {"peft_type", isRead, "the kind of adapter, here PREFIX_TUNING"},
    {"num_virtual_tokens", isRead, "the number of entries"},
    {"token_dim", isRead, "the width of all heads' keys together"},
    {"num_attention_heads", isRead, "the heads of keys"},
    {"num_layers", isRead, "the layers"},
    {"num_transformer_submodules", "[1]", "an encoder beside the decoder"},
    {"task_type", R"(["CAUSAL_LM", "FEATURE_EXTRACTION"])", "a head for another task"},
    // What PEFT computed with a projection is stored behind it.
    {"prefix_projection"},
    {"encoder_hidden_size"},
    {"auto_mapping"},
    {"peft_version"},
    {"base_model_name_or_path"},
    {"revision"},
    {"inference_mode"},
    {"*", never, "something that PEFT 0.21 does not know"},
};

const KeyTable ctxc::prefixKeys{"adapter_config.json of prefix tuning", keysOfPrefixTuning};

Expected<std::optional<PrefixSettings>> PrefixSettings::read(StringRef text, StringRef path) {
  auto value = parseStrictJson(text, path);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("peft_type") != prefixTuning)
    return std::nullopt;
  Problems problems;
  ConfigReader config(*object, path, "", prefixKeys, problems);
  constexpr int64_t most = 1 << 24;
  PrefixSettings settings;
  config.text("peft_type", "");
  settings.count = config.integer("num_virtual_tokens", std::nullopt, 1, most);
  settings.tokenWidth = config.integer("token_dim", std::nullopt, 1, most);
  settings.heads = config.integer("num_attention_heads", std::nullopt, 1, most);
  settings.layers = config.integer("num_layers", std::nullopt, 1, most);
  if (settings.tokenWidth % settings.heads != 0)
    config.problem("token_dim", "is not understood; expected a multiple of " +
                                    Twine(settings.heads) + ", num_attention_heads");
  config.finish();
  if (Error error = problems.take())
    return std::move(error);
  return settings;
}

Expected<VirtualEntries> ctxc::readPrefix(StringRef directory, const PrefixSettings &settings,
                                          const SafetensorsFile &file) {
  auto fail = [&](const Twine &message) { return makeError(directory + ": " + message); };
  auto [count, wide, heads, layers] = settings;
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
