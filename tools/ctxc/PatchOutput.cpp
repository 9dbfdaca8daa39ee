#include "PatchOutput.h"
#include "ctxc/Session/Adapter.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::StringRef;

std::vector<OptionSpec> driver::patchOutputOptions() {
  return {
      writesInto({"-o",
                  "PATH",
                  "what to write: a file; for --format=peft a new directory; for --positions a\n"
                  "new directory of files, or one file if the name ends in .safetensors",
                  {},
                  true}),
      {"--format",
       "FORMAT",
       "patch (default), ctxc's own file; peft, a LoRA adapter for transformers;\n"
       "or gguf-lora, one for llama.cpp (docs/adapters.md)",
       {"patch", "peft", "gguf-lora"}},
      {"--factors", "TYPE",
       "type of the numbers in the file: f32 (default), bf16 or f16, in half the\n"
       "space; the loss by rounding is printed, and stored in the metadata",
       storageNames()}};
}

static Error withOption(Error error) {
  return error ? makeError("-o: " + llvm::toString(std::move(error))) : Error::success();
}

DType driver::factorsType(const Arguments &arguments) {
  return storageNamed(arguments.get("--factors", "f32"));
}

std::string driver::roundingText(DType factors, double rounding) {
  if (factors == DType::F32)
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << "; rounded to " << (factors == DType::BF16 ? "bf16" : "f16")
                                 << ", which takes " << llvm::format("%.2g", 100 * rounding)
                                 << " % of a patch's changes at most";
  return text;
}

bool driver::isOneFile(const Arguments &arguments) {
  return arguments.has("--positions") && arguments.get("-o", "").ends_with(".safetensors");
}

Error driver::checkPatchOutput(const Arguments &arguments) {
  StringRef path = arguments.get("-o", "");
  StringRef format = arguments.get("--format", "patch");
  bool several = arguments.has("--positions");
  if (arguments.has("--factors") && format != "patch")
    return makeError("--factors: does not go with --format=" + format +
                     ", whose numbers are float32; leave it out");
  if (several && format != "patch")
    return makeError("--positions: does not go with --format=" + format +
                     ", which is an adapter for the patch of one token");
  if ((!several && format != "peft") || isOneFile(arguments))
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
