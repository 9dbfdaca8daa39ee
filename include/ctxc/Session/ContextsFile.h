//===- ContextsFile.h - several contexts, and the texts of each -----------===//
#ifndef CTXC_SESSION_CONTEXTSFILE_H
#define CTXC_SESSION_CONTEXTSFILE_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ctxc {

/// A line. Paths are complete, and empty where the line has none.
struct ContextEntry {
  std::string where; ///< FILE:3, for messages
  std::string name;  ///< letters, digits, '-', '_' and '.'; no two are equal
  std::string context;
  std::vector<int64_t> tokens; ///< the context as token ids, if it is not in a file
  std::string text, heldOut, prompts;
  std::string system, messages; ///< in the place of a context: a conversation's beginning
  bool isChat() const { return !system.empty() || !messages.empty(); }
};

/// Reads JSON lines with the members `context`, `context_tokens`, `system` or `messages`, and
/// `name`, `text`, `held_out` and `prompts`; paths are relative to the file. The name of a context
/// without one is that of its file. Errors: no line; other members; a name twice, or one that is no
/// name of a file.
llvm::Expected<std::vector<ContextEntry>> readContextsFile(llvm::StringRef path,
                                                           llvm::StringRef option);

} // namespace ctxc

#endif // CTXC_SESSION_CONTEXTSFILE_H
