//===- ContextTexts.h - a context and texts after it: distil and evaluate -===//
#ifndef CTXC_TOOLS_CTXC_CONTEXTTEXTS_H
#define CTXC_TOOLS_CTXC_CONTEXTTEXTS_H

#include "ctxc/Session/TextsFile.h"
#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// --context, --context-tokens, --chat and its options, --unrelated, --tokenizer, --seed and
/// --threads.
std::vector<OptionSpec> contextOptions();

/// Fails unless exactly one of --context, --context-tokens and --chat is given. Quick.
llvm::Error checkContextOptions(const Arguments &arguments);

/// Opens MODEL, a checkpoint's directory, with its weights in float32.
llvm::Expected<std::unique_ptr<Model>> openForAdapters(const Arguments &arguments,
                                                       bool isAddedTo = true);

llvm::Expected<ContextTexts> readContext(const Arguments &arguments, Model &model);

/// The files that `option` names; conversations where the context is one's beginning.
llvm::Expected<std::vector<TextSequence>> readTexts(const Arguments &arguments,
                                                    llvm::StringRef option, Model &model,
                                                    const ContextTexts &context);
llvm::Expected<std::vector<std::vector<int64_t>>> readPrompts(const Arguments &arguments,
                                                              llvm::StringRef option, Model &model);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CONTEXTTEXTS_H
