//===- SentencePooling.h - how a directory makes one vector of a text ------===//
//
// sentence-transformers keeps in modules.json what follows the transformer: a pooling, whose folder
// has a config.json, and a scaling to length 1. A GGUF file has a key for the pooling.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_SENTENCEPOOLING_H
#define CTXC_CHECKPOINT_SENTENCEPOOLING_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Numerics/Pooling.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace ctxc {

/// None where neither is there. Errors: a module that is not known here, a key or a value that is
/// not understood.
llvm::Expected<std::optional<Pooling>> readPooling(const Checkpoint &checkpoint);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_SENTENCEPOOLING_H
