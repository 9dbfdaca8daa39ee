// A LoRA adapter directory as PEFT reads it.
#include "Lora.h"
#include "PatchMetadata.h"
#include "PeftConfig.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Support/NewDirectory.h"

using namespace llvm;
using namespace ctxc;

static TensorSource sourceOf(std::string name, SmallVector<int64_t, 4> shape,
                             ArrayRef<double> values) {
  return {std::move(name), DType::F32, std::move(shape),
          [values](raw_ostream &os) { return writeFloat32(os, values); }};
}

Error ctxc::writePeftAdapter(StringRef outDir, const Patch &patch, const PatchMetadata &metadata,
                             const AdapterModel &model) {
  Expected<std::vector<LoraFactors>> factors = loraFactors(patch, model);
  if (!factors)
    return factors.takeError();
  PeftConfig config;
  config.inFirst = !model.inFirst.empty();
  std::vector<TensorSource> tensors;
  for (const LoraFactors &each : *factors) {
    config.modules.push_back({moduleOf(each.module, model.modelType), 1});
    std::string prefix = "base_model.model." + config.modules.back().first;
    tensors.push_back(sourceOf(prefix + ".lora_A.weight", {1, int64_t(each.a.size())}, each.a));
    tensors.push_back(sourceOf(prefix + ".lora_B.weight", {int64_t(each.b.size()), 1}, each.b));
  }
  std::map<std::string, std::string> strings = metadataStrings(metadata);
  strings["format"] = "pt";
  return writeNewDirectory(outDir, "an adapter directory", [&](StringRef directory) -> Error {
    if (Error e = writeSafetensors(pathIn(directory, "adapter_model.safetensors"),
                                   std::move(tensors), strings))
      return e;
    return writePeftConfig(pathIn(directory, "adapter_config.json"), config, model);
  });
}
