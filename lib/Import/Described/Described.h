//===- Described.h - models from descriptions of their types --------------===//
//
// A description (families/TYPE.json, made by tools/describe) holds the program of a model type of
// transformers, whose numbers are expressions of the config's keys, and says for which configs this
// program is right. Any other config is refused.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_DESCRIBED_H
#define CTXC_IMPORT_DESCRIBED_H

#include "../HuggingFace/StoredTensors.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ctxc::described {

/// The described model types, sorted.
std::vector<llvm::StringRef> types();

/// The text of the description of `type`; empty where there is none.
llvm::StringRef descriptionOf(llvm::StringRef type);

/// The module that `description` gives for `config`, which `reader` reads and whose file is `path`,
/// with the types that `tensors` has stored; null after problems. `needWeights`: the numbers are
/// needed, too, which some classes compute.
mlir::OwningOpRef<mlir::ModuleOp>
importConfig(llvm::StringRef description, const llvm::json::Object &config, ConfigReader &reader,
             llvm::StringRef path, hf::StoredTensors &tensors, bool needWeights, Problems &problems,
             mlir::MLIRContext &context, std::vector<std::string> &warnings);

} // namespace ctxc::described

#endif // CTXC_IMPORT_DESCRIBED_H
