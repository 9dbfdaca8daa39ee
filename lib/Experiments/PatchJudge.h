//===- PatchJudge.h - another program's opinion of stored patches ---------===//
#ifndef CTXC_LIB_EXPERIMENTS_PATCHJUDGE_H
#define CTXC_LIB_EXPERIMENTS_PATCHJUDGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace ctxc::experiments {

/// Runs `command` (a program and its arguments, separated by spaces, as `python
/// test/judge/judge.py`) with `model --batch LIST`, where LIST is a JSON list of the patch files,
/// written to `directory`. Returns the objects that it prints, one for each patch, in order.
/// Errors: the program does not exist; it ends with a code other than 0 and 1 (a patch that does
/// not pass); it prints something else.
llvm::Expected<std::vector<llvm::json::Object>> judgePatches(llvm::StringRef command,
                                                             llvm::StringRef model,
                                                             llvm::ArrayRef<std::string> files,
                                                             llvm::StringRef directory);

} // namespace ctxc::experiments

#endif // CTXC_LIB_EXPERIMENTS_PATCHJUDGE_H
