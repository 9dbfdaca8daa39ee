//===- OpenedContext.h - what ctxc distil and ctxc evaluate begin with ----===//
#ifndef CTXC_TOOLS_CTXC_OPENEDCONTEXT_H
#define CTXC_TOOLS_CTXC_OPENEDCONTEXT_H

#include "ContextTexts.h"
#include "ctxc/Report/CardReport.h"

namespace ctxc::driver {

struct Opened {
  std::unique_ptr<Model> model;
  ContextTexts context;
  int64_t seed;
};

/// `isAddedTo`: changes are added to the weights, which are then float32. Otherwise they stay
/// beside the weights, which keep their types and may be a GGUF file's.
llvm::Expected<Opened> openContext(const Arguments &arguments, bool isAddedTo = true);

/// What an adapter is judged by, without its texts.
EvaluateRequest aboutOf(const Opened &opened);

OptionSpec strengthOption();
/// The value of --strength.
llvm::Expected<double> strengthOf(const Arguments &arguments);

/// What a card says beside its numbers.
llvm::Expected<CardSettings> settingsOf(Opened &opened, const Adapter &adapter);

std::string pageText(llvm::StringRef command, const Card &card, const CardSettings &settings);
std::string jsonText(const Card &card, const CardSettings &settings);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_OPENEDCONTEXT_H
