//===- Record.h - what is known of a position, as an object of JSON ---------===//
//
// Every record has the same members, null where nothing is known, so that the files are a table.
// Its columns are described in docs/batch.md.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_BATCH_RECORD_H
#define CTXC_LIB_BATCH_RECORD_H

#include "PromptLine.h"
#include "ctxc/Verify/Verify.h"
#include "llvm/Support/JSON.h"

namespace ctxc::batch {

/// Of a line, or one of its positions, of which nothing could be made.
llvm::json::Object errorRecord(const PromptLine &line, std::optional<int64_t> position,
                               llvm::StringRef error);

/// Of a position. Where the line asks for no metrics, a step has token, position, layers and norm.
llvm::json::Object stepRecord(const PromptLine &line, const VerifyStep &step);

} // namespace ctxc::batch

#endif // CTXC_LIB_BATCH_RECORD_H
