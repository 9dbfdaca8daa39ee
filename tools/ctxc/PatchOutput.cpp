#include "PatchOutput.h"
#include "ctxc/Session/Adapter.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::StringRef;

std::vector<OptionSpec> driver::patchOutputOptions() {
  return {
      writesInto({"-o",
                  "PATH",
                  "what to write: a file; a new directory for --format=peft and for --positions",
                  {},
                  true}),
      {"--format",
       "FORMAT",
       "patch (default), ctxc's own file; peft, a LoRA adapter for transformers;\n"
       "or gguf-lora, one for llama.cpp (docs/adapters.md)",
       {"patch", "peft", "gguf-lora"}}};
}

static Error withOption(Error error) {
  return error ? makeError("-o: " + llvm::toString(std::move(error))) : Error::success();
}

Error driver::checkPatchOutput(const Arguments &arguments) {
  StringRef path = arguments.get("-o", "");
  StringRef format = arguments.get("--format", "patch");
  bool several = arguments.has("--positions");
  if (several && format != "patch")
    return makeError("--positions: does not go with --format=" + format +
                     ", which is an adapter for the patch of one token");
  if (!several && format != "peft")
    return withOption(checkWritable(path));
  if (llvm::sys::fs::exists(path))
    return makeError("-o: " + path + " already exists; name a directory that does not");
  return withOption(checkWritable(path));
}

/// The error, with the reason why an adapter cannot hold the patch, and a plan whose patch it could
/// hold.
static Error withAdvice(Model &model, Error why) {
  std::string text = llvm::toString(std::move(why)) + "; ";
  llvm::Expected<std::vector<std::string>> plan = planOfMatrices(model);
  if (!plan)
    return plan.takeError();
  if (plan->empty())
    return makeError(text + "no plan of this model patches matrices alone: leave --format out, and "
                            "use the file with ctxc apply");
  return makeError(text + "expected --plan " + llvm::join(*plan, ","));
}

Error driver::writePatchOutput(const Arguments &arguments, Model &model, const Patch &patch,
                               const PatchMetadata &metadata) {
  StringRef path = arguments.get("-o", ""), format = arguments.get("--format", "patch");
  if (format == "patch")
    return writePatchFile(path, patch, metadata);
  if (Error why = checkLora(patch))
    return withAdvice(model, std::move(why));
  llvm::Expected<AdapterModel> adapter = adapterModel(model);
  if (!adapter)
    return adapter.takeError();
  return format == "peft" ? writePeftAdapter(path, patch, metadata, *adapter)
                          : writeGgufLora(path, patch, metadata, *adapter);
}
