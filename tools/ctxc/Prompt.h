//===- Prompt.h - the tokens of a call: --tokens or --prompt --------------===//
#ifndef CTXC_TOOLS_CTXC_PROMPT_H
#define CTXC_TOOLS_CTXC_PROMPT_H

#include "Session.h"

namespace ctxc::driver {

std::vector<OptionSpec> promptOptions();

/// Fails unless exactly one of --tokens and --prompt is given, and well formed.
/// Cheap: for saying so before a model is opened.
llvm::Error checkPromptOptions(const Arguments &arguments);

/// The tokens that the options name.
llvm::Expected<std::vector<int64_t>> promptTokens(const Arguments &arguments, Session &session);

/// --positions, and the positions that it names in a prompt of `count` tokens; none where it is not
/// given.
OptionSpec positionsOption();
llvm::Expected<std::vector<int64_t>> promptPositions(const Arguments &arguments, int64_t count);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_PROMPT_H
