//===- FormatKeys.h - the keys of files of weights ------------------------===//
#ifndef CTXC_CHECKPOINT_FORMATKEYS_H
#define CTXC_CHECKPOINT_FORMATKEYS_H

#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/KeyRules.h"
#include "ctxc/Support/Problems.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc {

/// Those of a safetensors file's header, and of model.safetensors.index.json.
extern const KeyTable safetensorsKeys, shardIndexKeys;

/// Adds a problem for each key of those that `concerns` takes and `table` refuses; whoever calls
/// this reads the keys that are read.
void checkGgufKeys(const GgufFile &file, llvm::function_ref<bool(llvm::StringRef)> concerns,
                   const KeyTable &table, Problems &problems);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_FORMATKEYS_H
