//===- Prompt.h - what a call runs: --tokens or --prompt, and --embeddings ===//
#ifndef CTXC_TOOLS_CTXC_PROMPT_H
#define CTXC_TOOLS_CTXC_PROMPT_H

#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

std::vector<OptionSpec> promptOptions();

/// Those of `ctxc verify` and `ctxc patch` beside: --embeddings and --embeddings-at.
std::vector<OptionSpec> embeddingsOptions();

/// Fails unless exactly one of --tokens and --prompt is given, and well formed.
/// Cheap: for saying so before a model is opened.
llvm::Error checkPromptOptions(const Arguments &arguments);

/// The tokens that the options name.
llvm::Expected<std::vector<int64_t>> promptTokens(const Arguments &arguments, Model &model);

/// The same, with the rows of --embeddings among them.
llvm::Expected<std::vector<Input>> promptInputs(const Arguments &arguments, Model &model);

/// The run of a stored patch: its tokens, with rows of --embeddings where it had rows. An error
/// where they are not the ones that it was made with.
llvm::Expected<std::vector<Input>> storedInputs(const Arguments &arguments,
                                                const PatchMetadata &metadata);

/// --positions, and the positions that it names in a prompt of `count` tokens; none where it is not
/// given.
OptionSpec positionsOption();
llvm::Expected<std::vector<int64_t>> promptPositions(const Arguments &arguments, int64_t count);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_PROMPT_H
