//===- PeftConfig.h - adapter_config.json, as PEFT reads it ---------------===//
#ifndef CTXC_LIB_EXPORT_PEFTCONFIG_H
#define CTXC_LIB_EXPORT_PEFTCONFIG_H

#include "ctxc/Export/Adapter.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// What PEFT's model puts in front of the names of modules.
constexpr llvm::StringLiteral peftPrefix = "base_model.model.";

/// What a LoRA adapter changes, by modules as transformers names them.
struct PeftConfig {
  std::vector<std::pair<std::string, int64_t>>
      modules,                       ///< with the rank of each, which is its alpha
      parameters;                    ///< of modules, with their full names
  std::vector<std::string> replaced; ///< whose whole weights are in the adapter
  bool inFirst = false;              ///< matrices are stored as (in, out)
};

/// The module as transformers' causal model names it. A checkpoint of the model without its head
/// stores names without the first part, and checkpoints of vision models may have its parts in
/// another order, or the text model's as those of a model that stands alone.
std::string moduleOf(llvm::StringRef module, llvm::StringRef modelType = "");

llvm::Error writeJson(llvm::StringRef path, llvm::json::Object object);
llvm::Error writePeftConfig(llvm::StringRef path, const PeftConfig &config,
                            const AdapterModel &model);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PEFTCONFIG_H
