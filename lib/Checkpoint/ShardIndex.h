//===- ShardIndex.h - which file of a checkpoint holds which tensor -------===//
#ifndef CTXC_LIB_CHECKPOINT_SHARDINDEX_H
#define CTXC_LIB_CHECKPOINT_SHARDINDEX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace ctxc {

/// The weight_map of model.safetensors.index.json at `path`: tensor to file
/// name. Every name is a plain file name that ends in .safetensors; all
/// violations are reported together.
llvm::Expected<std::map<std::string, std::string>> readShardIndex(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_LIB_CHECKPOINT_SHARDINDEX_H
