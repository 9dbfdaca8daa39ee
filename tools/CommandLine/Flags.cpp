#include "tools/CommandLine/Flags.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using llvm::StringRef;

/// Words of the library's messages, and the flags that do what they say. Each is in a message, as
/// test/package/flags.py checks.
static constexpr std::pair<StringRef, StringRef> flagsOfWords[] = {
    {"the reference engine", "--backend reference"},
    {"the compiled engine", "without --target"},
    {"storage type", "--dtype"},
    {"give token ids", "--tokens"},
    {"as plain text", "without --chat"},
    {"a seed of random ones", "--weights DIR, --weights random:SEED"},
    {"patch just", "--plan"},
    {"split prompts need", "--split-prompts"},
    {"a context were found", "ctxc check --witness"},
    {"a witness file", "ctxc check --witness"},
    {"a proof file", "ctxc check --proof"},
    {"the comparison with its source", "--no-self-check"},
};

std::string driver::withFlags(StringRef message) {
  llvm::SmallVector<StringRef> flags;
  for (auto [words, flag] : flagsOfWords)
    if (message.contains(words) && !message.contains(flag))
      flags.push_back(flag);
  return flags.empty() ? message.str() : (message + " (" + llvm::join(flags, ", ") + ")").str();
}

ModelDiagnostic driver::withFlags(ModelDiagnostic diagnostic) {
  diagnostic.message = withFlags(StringRef(diagnostic.message));
  for (ModelDiagnostic &note : diagnostic.notes)
    note = withFlags(std::move(note));
  return diagnostic;
}
