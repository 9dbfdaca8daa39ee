//===- ContextTexts.h - a context and texts after it: distil and evaluate -===//
#ifndef CTXC_TOOLS_CTXC_CONTEXTTEXTS_H
#define CTXC_TOOLS_CTXC_CONTEXTTEXTS_H

#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// --context, --context-tokens, --text, --unrelated, --tokenizer, --seed and --threads.
std::vector<OptionSpec> contextOptions();

/// Fails unless exactly one of --context and --context-tokens is given. Quick.
llvm::Error checkContextOptions(const Arguments &arguments);

/// Opens MODEL, a checkpoint's directory, with its weights in float32.
llvm::Expected<std::unique_ptr<Model>> openForAdapters(const Arguments &arguments);

struct ContextTexts {
  std::vector<int64_t> context; ///< with the tokens in front
  std::vector<int64_t> front;   ///< these alone
};
llvm::Expected<ContextTexts> readContext(const Arguments &arguments, Model &model);

/// The tokens of the text in `path`, as it stands behind others. Errors: no text, bytes that are no
/// UTF-8; `option` names it in messages.
llvm::Expected<std::vector<int64_t>> readTokens(llvm::StringRef path, llvm::StringRef option,
                                                Model &model);

/// The texts of the file that `option` names: JSON lines (.jsonl), each with "prompt" and "answer",
/// as text or as token ids; or plain text, in which a line of dashes alone divides texts.
llvm::Expected<std::vector<TextSequence>> readTexts(const Arguments &arguments,
                                                    llvm::StringRef option, Model &model);

/// What texts begin with: JSON lines (.jsonl), each with "prompt"; or plain text, a prompt a line.
llvm::Expected<std::vector<std::vector<int64_t>>> readPrompts(const Arguments &arguments,
                                                              llvm::StringRef option, Model &model);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CONTEXTTEXTS_H
