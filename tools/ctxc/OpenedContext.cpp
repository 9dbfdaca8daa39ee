#include "OpenedContext.h"
#include "ctxc/CardPage/CardPage.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/TokenProgress.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<Opened> driver::openContext(const Arguments &arguments, bool isAddedTo) {
  Opened opened;
  if (Error error = arguments.integer("--seed", 0, INT64_MAX / 4, 0).moveInto(opened.seed))
    return std::move(error);
  if (Error error = openForAdapters(arguments, isAddedTo).moveInto(opened.model))
    return std::move(error);
  if (Error error = readContext(arguments, *opened.model).moveInto(opened.context))
    return std::move(error);
  return std::move(opened);
}

EvaluateRequest driver::aboutOf(const Opened &opened) {
  EvaluateRequest about;
  about.context = opened.context.context;
  about.front = opened.context.front;
  about.seed = opened.seed;
  about.compared = progressOnTerminal("predictions");
  return about;
}

OptionSpec driver::strengthOption() {
  return {"--strength", "X",
          "scale the adapter's changes by X: 0 changes nothing, 1 is as fitted, and more\n"
          "exaggerates the changes. Default 1"};
}

Expected<double> driver::strengthOf(const Arguments &arguments) {
  constexpr double most = 10;
  double strength = 1;
  StringRef text = arguments.get("--strength", "1");
  if (text.getAsDouble(strength) || !(strength >= 0) || strength > most)
    return makeError(
        llvm::formatv("--strength: found '{0}', expected a number from 0 to {1}", text, most)
            .str());
  return strength;
}

Expected<CardSettings> driver::settingsOf(Opened &opened, const Adapter &adapter) {
  CardSettings settings;
  settings.model = opened.model->name().str();
  settings.contextTokens = opened.context.context.size();
  settings.prefix = adapter.prefix;
  settings.seen = adapter.seen;
  settings.rank = adapter.rank();
  settings.entries = adapter.entries.count();
  settings.bootstrapSeed = opened.seed;
  if (Error error = opened.model->hash().moveInto(settings.modelHash))
    return std::move(error);
  return settings;
}

std::string driver::pageText(StringRef command, const Card &card, const CardSettings &settings) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCardPage(os, command, card, settings);
  return text;
}

std::string driver::jsonText(const Card &card, const CardSettings &settings) {
  return llvm::formatv("{0:2}\n", cardJson(card, settings));
}
