//===- HubCache.h - models by their names on the Hugging Face hub ---------===//
//
// Where `huggingface_hub` keeps what it has fetched: $HF_HUB_CACHE, else $HF_HOME/hub, else
// $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. The model OWNER/NAME is there in
// models--OWNER--NAME: refs/main has the commit, and snapshots/COMMIT its files. Nothing is ever
// fetched.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_HUBCACHE_H
#define CTXC_CHECKPOINT_HUBCACHE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ctxc {

/// Where the model is that `path` names: `path` itself if there is something, or if it is no
/// OWNER/NAME or OWNER/NAME/FILE whose snapshot the cache has. A snapshot without config.json and
/// with one GGUF file is that file.
std::string findModel(llvm::StringRef path);

/// For a path at which nothing is: what to do if it is a name on the hub, as a clause that begins
/// with "; "; else empty.
std::string hubHint(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_HUBCACHE_H
