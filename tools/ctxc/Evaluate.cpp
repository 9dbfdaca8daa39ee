// ctxc evaluate
#include "AdapterVerdict.h"
#include "CardParts.h"
#include "Commands.h"
#include "OpenedContext.h"
#include "ctxc/Export/ApplyAdapter.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/AtomicFile.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Error writeFile(StringRef path, const std::string &content) {
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << content;
    return Error::success();
  });
}

static Expected<int> runEvaluate(const Arguments &arguments) {
  if (Error error = checkContextOptions(arguments))
    return std::move(error);
  auto strength = strengthOf(arguments);
  if (!strength)
    return strength.takeError();
  auto opened = openContext(arguments);
  if (!opened)
    return opened.takeError();
  Model &model = *opened->model;
  auto adapter =
      readLastingAdapter(arguments.positional(1), *model.checkpoint(), opened->context.front);
  if (!adapter)
    return adapter.takeError();
  if (!adapter->entries.empty() && arguments.has("--strength"))
    return makeError("--strength: applies to changes of weights, but " + arguments.positional(1) +
                     " has virtual entries of the cache; leave it out");
  auto origin = readAdapterOrigin(arguments.positional(1));
  if (!origin)
    return origin.takeError();
  scale(*adapter, *strength);
  EvaluateRequest about = aboutOf(*opened);
  if (Error error = readTexts(arguments, "--text", model, opened->context).moveInto(about.texts))
    return std::move(error);
  if (arguments.has("--unrelated"))
    if (Error error =
            readTexts(arguments, "--unrelated", model, opened->context).moveInto(about.unrelated))
      return std::move(error);
  auto card = model.evaluate(*adapter, about);
  if (!card)
    return card.takeError();
  auto settings = settingsOf(*opened, *adapter);
  if (!settings)
    return settings.takeError();
  settings->strength = *strength;
  if (Error error = addFailureTexts(model, about, *card, *settings))
    return std::move(error);
  if (arguments.has("--html"))
    if (Error error = exampleTexts(model, *adapter, about, opened->context.chat != nullptr)
                          .moveInto(settings->examples))
      return std::move(error);
  if (origin->card)
    out() << "its own card: " << approximation(*origin) << "\n";
  writeCard(out(), *card, *settings);
  out().flush();
  warnOfVerdict(*card, *settings);
  if (auto html = arguments.get("--html"))
    if (Error error = writeFile(*html, pageText("ctxc evaluate", *card, *settings)))
      return std::move(error);
  if (auto json = arguments.get("--json"))
    if (Error error = writeFile(*json, jsonText(*card, *settings)))
      return std::move(error);
  return ExitGood;
}

Command driver::evaluateCommand() {
  Command command{
      "evaluate",
      "measure how well an adapter replaces a context",
      {"MODEL", "DIR"},
      contextOptions(),
      "DIR is an adapter in PEFT's format, from ctxc or another program: LoRA, or prefix tuning;\n"
      "or what `ctxc distil` wrote for an exported program. Give texts that it was not fitted on.",
      "  ctxc evaluate gemma-3-270m persona --context persona.txt --text other.jsonl\n",
      runEvaluate};
  const OptionSpec own[] = {
      reads({"--text", "FILE", "texts, as for `ctxc distil`", {}, true}), strengthOption(),
      writes({"--json", "FILE", "also write the card as JSON"}),
      writes({"--html", "FILE", "also write the card as a page, with answers side by side"})};
  command.options.insert(command.options.begin(), std::begin(own), std::end(own));
  return command;
}
