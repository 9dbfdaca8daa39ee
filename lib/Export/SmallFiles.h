//===- SmallFiles.h - the files of a checkpoint beside its weights --------===//
#ifndef CTXC_LIB_EXPORT_SMALLFILES_H
#define CTXC_LIB_EXPORT_SMALLFILES_H

#include "ctxc/Checkpoint/Checkpoint.h"

namespace ctxc {

/// Copies tokenizer and other small text files of the checkpoint's directory
/// into `outDir`: *.json except the index and config.json, *.model, *.txt,
/// *.jinja, *.md. A symbolic link is followed inside the directory and into a
/// hub cache's ../../blobs; any other is an error: a checkpoint must not make
/// ctxc copy a private file whose name its author knows.
llvm::Error copySmallFiles(const Checkpoint &checkpoint, llvm::StringRef outDir);

/// Writes config.json into `outDir`: byte for byte, or, with `storage`, with the
/// dtype (torch_dtype), where it has one, changed to that type.
llvm::Error writeConfig(const Checkpoint &checkpoint, llvm::StringRef outDir,
                        std::optional<DType> storage);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_SMALLFILES_H
