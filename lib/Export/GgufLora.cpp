// A LoRA adapter as a GGUF file, version 3: magic, counts, keys, tensor infos, tensors.
#include "ExpertLora.h"
#include "Lora.h"
#include "PatchMetadata.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/EndianStream.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t alignment = 32;

struct GgufTensor {
  std::string name;
  SmallVector<uint64_t, 3> sizes; ///< that which varies fastest is first
  std::vector<float> values;
};

/// What the file has.
struct GgufLora {
  std::string modelType;
  int64_t alpha = 1; ///< llama.cpp multiplies B A by alpha / rank
  std::map<std::string, std::string> strings;
  std::vector<GgufTensor> tensors;

  /// `a` is (rank, in), `b` (out, rank), row after row.
  Error add(StringRef module, int64_t rank, std::vector<float> a, std::vector<float> b);
  Error add(ExpertLora experts);
};

class GgufWriter {
public:
  explicit GgufWriter(raw_ostream &os) : os(os, endianness::little) {}

  void header(uint64_t tensors, uint64_t keys) {
    os.OS << "GGUF";
    os.write<uint32_t>(3);
    os.write<uint64_t>(tensors);
    os.write<uint64_t>(keys);
  }
  void key(StringRef name, StringRef value) {
    string(name);
    os.write<uint32_t>(8); // a string
    string(value);
  }
  void key(StringRef name, float value) {
    string(name);
    os.write<uint32_t>(6); // a float32
    os.write<float>(value);
  }
  void info(const GgufTensor &tensor, uint64_t offset) {
    string(tensor.name);
    os.write<uint32_t>(tensor.sizes.size());
    for (uint64_t size : tensor.sizes)
      os.write<uint64_t>(size);
    os.write<uint32_t>(0); // F32
    os.write<uint64_t>(offset);
  }
  void number(float value) { os.write<float>(value); }
  /// Zeros up to the next multiple of the alignment.
  void pad() { os.OS.write_zeros(offsetToAlignment(os.OS.tell(), Align(alignment))); }

private:
  void string(StringRef text) {
    os.write<uint64_t>(text.size());
    os.OS << text;
  }
  support::endian::Writer os;
};

} // namespace

/// general.architecture of a transformers model; empty where GGUF has none or ctxc does not know
/// it.
static StringRef architectureOf(StringRef modelType) {
  return StringSwitch<StringRef>(modelType)
      .Cases({"llama", "mistral", "mixtral"}, "llama")
      .Cases({"gemma3", "gemma3_text"}, "gemma3")
      .Case("cohere", "command-r")
      .Case("phi", "phi2")
      .Case("gpt_neox", "gptneox")
      .Case("qwen2_moe", "qwen2moe")
      .Case("qwen3_moe", "qwen3moe")
      .Case("glm4_moe", "glm4moe")
      .Case("gpt_oss", "gpt-oss")
      .Case("deepseek_v3", "deepseek2")
      .Case("olmoe", "olmoe")
      .Cases({"gpt2", "gptj", "falcon", "phi3", "gemma", "gemma2", "olmo", "olmo2", "qwen2",
              "qwen3", "starcoder2", "stablelm", "granite", "nemotron", "smollm3", "glm4", "bloom",
              "bert"},
             modelType)
      .Default("");
}

/// GGUF's name of a matrix of a layer. Queries, keys and values are not among them: llama.cpp's
/// converters reorder or fuse their rows for some architectures.
static StringRef matrixOf(StringRef module) {
  return StringSwitch<StringRef>(module)
      .Cases({"mlp.gate_proj", "feed_forward.gate_proj"}, "ffn_gate")
      .Cases({"mlp.up_proj", "mlp.c_fc", "mlp.fc_in", "mlp.fc1", "mlp.dense_h_to_4h", "fc1",
              "mlp.gate_up_proj", "intermediate.dense"},
             "ffn_up") // Phi 3 and GLM 4 keep gate and up in one
      .Cases({"mlp.down_proj", "mlp.c_proj", "mlp.fc_out", "mlp.fc2", "mlp.dense_4h_to_h", "fc2",
              "output.dense"},
             "ffn_down")
      .Cases({"self_attn.o_proj", "attn.c_proj", "attn.out_proj", "self_attention.dense",
              "attention.dense", "self_attn.dense", "self_attn.out_proj", "attention.output.dense"},
             "attn_output")
      .Cases({"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"}, "ffn_gate_shexp")
      .Cases({"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj"}, "ffn_up_shexp")
      .Cases({"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"}, "ffn_down_shexp")
      .Case("mlp.experts.down_proj", "ffn_down_exps")
      .Default("");
}

/// "model.layers.3.mlp.down_proj": blk.3.ffn_down.weight.
static Expected<std::string> tensorName(StringRef module) {
  for (StringRef stem : {"layers.", "h.", "layer."}) {
    StringRef rest = module;
    size_t at = rest.starts_with(stem) ? 0 : rest.find(("." + stem).str());
    if (at == StringRef::npos)
      continue;
    rest = rest.drop_front(at + stem.size() + (at ? 1 : 0));
    auto [number, name] = rest.split('.');
    unsigned layer;
    StringRef matrix = matrixOf(name);
    if (number.getAsInteger(10, layer) || matrix.empty())
      continue;
    return ("blk." + Twine(layer) + "." + matrix + ".weight").str();
  }
  return makeError("parameter " + quoted((module + ".weight").str()) +
                   ": has no counterpart in a GGUF file whose rows are in the same order; expected "
                   "a matrix of an MLP, or attention's output");
}

Error GgufLora::add(StringRef module, int64_t rank, std::vector<float> a, std::vector<float> b) {
  Expected<std::string> name = tensorName(module);
  if (!name)
    return name.takeError();
  for (float &x : b)
    x *= double(rank) / alpha;
  const uint64_t size = rank;
  tensors.push_back({*name + ".lora_a", {a.size() / size, size}, std::move(a)});
  tensors.push_back({*name + ".lora_b", {size, b.size() / size}, std::move(b)});
  return Error::success();
}

Error GgufLora::add(ExpertLora experts) {
  Expected<std::string> name = tensorName(experts.place.module + "." + experts.place.parameter);
  if (!name)
    return name.takeError();
  for (float &x : experts.b)
    x *= double(experts.rank) / alpha;
  const uint64_t rank = experts.rank, count = experts.experts;
  tensors.push_back({*name + ".lora_a", {uint64_t(experts.in), rank, count}, std::move(experts.a)});
  tensors.push_back(
      {*name + ".lora_b", {rank, uint64_t(experts.out), count}, std::move(experts.b)});
  return Error::success();
}

/// GGUF's name of the model's architecture; an error where there is none.
static Expected<StringRef> knownArchitecture(StringRef modelType, StringRef directory) {
  StringRef architecture = architectureOf(modelType);
  if (architecture.empty())
    return makeError(directory + ": no GGUF architecture is known for the model type " +
                     quoted(modelType));
  return architecture;
}

static void write(raw_ostream &os, StringRef architecture, const GgufLora &lora) {
  GgufWriter writer(os);
  writer.header(lora.tensors.size(), 4 + lora.strings.size());
  writer.key("general.architecture", architecture);
  writer.key("general.type", "adapter");
  writer.key("adapter.type", "lora");
  writer.key("adapter.lora.alpha", float(lora.alpha));
  for (const auto &[key, value] : lora.strings)
    writer.key("ctxc." + key, StringRef(value));
  uint64_t offset = 0;
  for (const GgufTensor &tensor : lora.tensors) {
    writer.info(tensor, offset);
    offset = alignTo(offset + tensor.values.size() * sizeof(float), alignment);
  }
  for (const GgufTensor &tensor : lora.tensors) {
    writer.pad();
    for (float value : tensor.values)
      writer.number(value);
  }
  writer.pad();
}

Error ctxc::writeGgufLora(StringRef path, const Patch &patch, const PatchMetadata &metadata,
                          const AdapterModel &model) {
  Expected<std::vector<LoraFactors>> factors = loraFactors(patch, model);
  if (!factors)
    return factors.takeError();
  Expected<StringRef> architecture = knownArchitecture(model.modelType, model.directory);
  if (!architecture)
    return architecture.takeError();
  GgufLora lora;
  lora.strings = metadataStrings(metadata);
  for (const LoraFactors &each : *factors)
    if (Error e = lora.add(each.module, 1, {each.a.begin(), each.a.end()},
                           {each.b.begin(), each.b.end()}))
      return e;
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) {
    write(os, *architecture, lora);
    return Error::success();
  });
}

Expected<std::string> ctxc::lastingGguf(const Adapter &adapter, const Checkpoint &checkpoint) {
  if (!adapter.vectors.empty())
    return makeError("parameter " + quoted(adapter.vectors.front().parameter) +
                     ": the adapter changes a vector, and a LoRA of llama.cpp holds matrices "
                     "alone");
  StringRef modelType = checkpoint.config().getString("model_type").value_or("");
  Expected<StringRef> architecture = knownArchitecture(modelType, checkpoint.directory());
  if (!architecture)
    return architecture.takeError();
  GgufLora lora;
  lora.alpha = std::max<int64_t>(adapter.rank(), 1);
  lora.strings = frontStrings(adapter);
  for (ExpertLora &experts : expertLoras(adapter, checkpoint))
    if (Error e = lora.add(std::move(experts)))
      return std::move(e);
  for (const MatrixChange &change : adapter.matrices) {
    if (expertPlace(change.parameter))
      continue;
    auto [a, b] = loraFactors(change);
    StringRef module = change.parameter;
    module.consume_back(".weight");
    if (Error e = lora.add(module, change.rank, std::move(a), std::move(b)))
      return std::move(e);
  }
  std::string bytes;
  raw_string_ostream os(bytes);
  write(os, *architecture, lora);
  return std::move(bytes);
}
