// ctxc distil --entries
#include "DistilEntries.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/TokenProgress.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

OptionSpec driver::entriesOption() {
  return {"--entries", "N",
          "change no weight: fit N virtual entries of the KV cache, which stand in the context's\n"
          "place in front of every text. They recover more than weights. auto: as many of 8, 16,\n"
          "32 and 64 as the context needs, by texts that are left out. none: change weights.\n"
          "Default: auto, and none beside an option about weights or kept tokens, or where the\n"
          "model or PEFT has no place for entries"};
}

/// The first given option that says how weights change, or what stays as tokens.
static std::optional<StringRef> optionOfWeights(const Arguments &arguments) {
  for (StringRef option : {"--rank", "--refine-others", "--ridge", "--protection",
                           "--matrices-only", "--gguf", "--curve", "--strength", "--objective",
                           "--keep", "--keep-share", "--keep-cache", "--keep-unit", "--contexts"})
    if (arguments.has(option))
      return option;
  return std::nullopt;
}

int64_t driver::givenEntries(const Arguments &arguments) {
  int64_t count = 0;
  return arguments.get("--entries", "auto").getAsInteger(10, count) ? 0 : count;
}

Error driver::checkEntriesOptions(const Arguments &arguments) {
  auto text = arguments.get("--entries");
  if (!text || *text == "none")
    return Error::success();
  if (auto option = optionOfWeights(arguments))
    return makeError(*option + ": says how weights change or what stays as tokens, and --entries "
                               "does neither; expected one of both");
  int64_t count = 0;
  if (*text != "auto" && (text->getAsInteger(10, count) || count < 1 || count > 1 << 16))
    return makeError("--entries: found '" + *text +
                     "', expected auto, none, or a number from 1 to 65536");
  return Error::success();
}

bool driver::mayHaveEntries(const Arguments &arguments) {
  return arguments.has("--entries") ? arguments.get("--entries", "") != "none"
                                    : !optionOfWeights(arguments);
}

Expected<EntriesChoice> driver::chooseForm(const Arguments &arguments, Model &model) {
  EntriesChoice choice;
  if (!mayHaveEntries(arguments))
    return choice;
  auto shapes = model.shapesOfEntries(1);
  if (Error error = shapes ? checkPrefixTuning(*shapes) : shapes.takeError()) {
    if (arguments.has("--entries") || arguments.has("--prefix-cache"))
      return std::move(error);
    choice.whyNot = llvm::toString(std::move(error));
    return choice;
  }
  choice.count = givenEntries(arguments);
  return choice;
}

Expected<Fitted> driver::fitEntries(int64_t count, Model &model, const DistilRequest &all) {
  DistilRequest request = all;
  request.fit.entries = count;
  request.fitted = progressOnTerminal("attentions");
  Fitted fitted;
  if (count == 0) {
    auto chosen = model.chooseEntries(request);
    if (!chosen)
      return chosen.takeError();
    fitted.made = std::move(chosen->made);
    fitted.entriesTried = std::move(chosen->tried);
  } else if (Error error = model.distil(request).moveInto(fitted.made)) {
    return std::move(error);
  }
  return fitted;
}
