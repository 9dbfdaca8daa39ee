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
          "32 and 64 as the context needs, by texts that are left out"};
}

Error driver::checkEntriesOptions(const Arguments &arguments) {
  auto text = arguments.get("--entries");
  if (!text)
    return Error::success();
  for (StringRef option : {"--rank", "--refine", "--refine-others", "--ridge", "--protection",
                           "--matrices-only", "--gguf", "--curve", "--strength", "--objective",
                           "--keep", "--keep-share", "--keep-cache", "--keep-unit", "--contexts"})
    if (arguments.has(option))
      return makeError(option + ": says how weights change or what stays as tokens, and --entries "
                                "does neither; expected one of both");
  int64_t count = 0;
  if (*text != "auto" && (text->getAsInteger(10, count) || count < 1 || count > 1 << 16))
    return makeError("--entries: found '" + *text +
                     "', expected auto, or a number from 1 to 65536");
  return Error::success();
}

Error driver::checkEntriesOf(const Arguments &arguments, Model &model) {
  if (!arguments.has("--entries"))
    return Error::success();
  auto shapes = model.shapesOfEntries(1);
  return shapes ? checkPrefixTuning(*shapes) : shapes.takeError();
}

Expected<Fitted> driver::fitEntries(StringRef option, Model &model, const DistilRequest &all) {
  EntriesRequest request{all.context, all.texts, 0, progressOnTerminal("attentions")};
  Fitted fitted;
  for (const TextSequence &text : request.texts)
    fitted.made.tokens += text.tokens.size();
  VirtualEntries &entries = fitted.made.adapter.entries;
  if (option.getAsInteger(10, request.count)) { // auto
    auto chosen = model.chooseEntries(request, all.front.value_or(all.prefix));
    if (!chosen)
      return chosen.takeError();
    entries = std::move(chosen->entries);
    fitted.entriesTried = std::move(chosen->tried);
  } else if (Error error = model.fitEntries(request).moveInto(entries)) {
    return std::move(error);
  }
  return fitted;
}
