//===- Prompt.h - what a call runs: --tokens, --prompt or --chat; --embeddings ===//
#ifndef CTXC_TOOLS_CTXC_PROMPT_H
#define CTXC_TOOLS_CTXC_PROMPT_H

#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

std::vector<OptionSpec> promptOptions();

/// The further options of `ctxc verify` and `ctxc patch`: --embeddings, --embeddings-at, --replay.
std::vector<OptionSpec> embeddingsOptions();

/// Fails unless exactly one of --tokens and --prompt is given, and is well formed. It is quick, so
/// that the error comes before a model is opened.
llvm::Error checkPromptOptions(const Arguments &arguments);

/// The tokens that the options name, with the vectors of --embeddings among them, and the positions
/// that --keep or --absorb keeps, or the model by default.
llvm::Error readPrompt(const Arguments &arguments, Model &model, VerifySettings &settings);

/// The run of a stored patch: its tokens, with vectors of --embeddings where the patch was made
/// with embeddings. Embeddings other than those are an error.
llvm::Expected<std::vector<Input>> storedInputs(const Arguments &arguments,
                                                const PatchMetadata &metadata);

/// The option --positions, and the positions that it names in a prompt of `count` tokens; none
/// where it is not given.
OptionSpec positionsOption();
llvm::Expected<std::vector<int64_t>> promptPositions(const Arguments &arguments, int64_t count);

/// What the steps have generated; empty where the model has no tokenizer.
std::string generatedText(Model &model, llvm::ArrayRef<VerifyStep> steps);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_PROMPT_H
