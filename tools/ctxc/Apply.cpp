// ctxc apply
#include "Commands.h"
#include "OpenedContext.h"
#include "StoredPatch.h"
#include "ctxc/Export/ApplyAdapter.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using namespace ctxc::driver;

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// What was added, for the lines that are printed.
struct Added {
  ApplyReport report;
  std::string what, warning; ///< "patch"; what its user must know
};

std::optional<DType> storageOf(const Arguments &arguments) {
  if (auto dtype = arguments.get("--dtype"))
    return storageNamed(*dtype);
  return std::nullopt;
}

Error refuse(const Arguments &arguments, StringRef option, StringRef appliesTo, StringRef found) {
  if (!arguments.has(option))
    return Error::success();
  return makeError(option + ": applies to " + appliesTo + ", but " + arguments.positional(1) +
                   " is " + found);
}

Expected<Added> addPatch(const Arguments &arguments, StringRef directory) {
  if (Error error = refuse(arguments, "--strength", "an adapter", "a patch, which is exact"))
    return std::move(error);
  auto file = readStoredPatch(arguments, arguments.positional(1));
  if (!file)
    return file.takeError();
  auto checkpoint = Checkpoint::open(arguments.positional(0));
  if (!checkpoint)
    return checkpoint.takeError();
  if (Error error = checkAgainst(**checkpoint, file->first, file->second))
    return std::move(error);
  auto report =
      applyPatch(**checkpoint, file->first, file->second, directory, storageOf(arguments));
  if (!report)
    return report.takeError();
  return Added{*report, "patch", staleness(file->second)};
}

Expected<Added> addAdapter(const Arguments &arguments, StringRef directory) {
  StringRef from = arguments.positional(1);
  if (Error error = refuse(arguments, "--position", "a file of several patches", "an adapter"))
    return std::move(error);
  auto strength = strengthOf(arguments);
  if (!strength)
    return strength.takeError();
  auto origin = readAdapterOrigin(from);
  if (!origin)
    return origin.takeError();
  auto checkpoint = Checkpoint::open(arguments.positional(0));
  if (!checkpoint)
    return checkpoint.takeError();
  auto adapter = readLastingAdapter(from, **checkpoint, {});
  if (!adapter)
    return adapter.takeError();
  scale(*adapter, *strength);
  origin->strength = *strength;
  auto report = applyAdapter(**checkpoint, *adapter, *origin, directory, storageOf(arguments));
  if (!report)
    return report.takeError();
  return Added{*report, "adapter", approximation(*origin)};
}

Expected<int> runApply(const Arguments &arguments) {
  StringRef directory = arguments.get("-o", "");
  if (isProgramFile(arguments.positional(0)))
    return makeError(arguments.positional(0) +
                     ": is an exported program, whose parameters change where it was made: "
                     "apply_patch of ctxc.jax or ctxc.export takes the same FILE; expected a "
                     "Hugging Face directory");
  auto added = isAdapterDirectory(arguments.positional(1)) ? addAdapter(arguments, directory)
                                                           : addPatch(arguments, directory);
  if (!added)
    return added.takeError();
  out() << printableLine(directory) << ": " << counted(added->report.changed, "tensor")
        << (added->what == "patch" ? " patched" : " changed")
        << "; rounding them to their storage type took "
        << llvm::format("%.2g", 100 * added->report.relativeRounding) << " % of the " << added->what
        << "\n";
  out().flush();
  err() << "ctxc: warning: " << added->warning << "; README.md in " << printableLine(directory)
        << " says how to use it\n";
  return ExitGood;
}

} // namespace

Command driver::applyCommand() {
  return {
      "apply",
      "write a checkpoint with a patch or an adapter added, which other programs can load",
      {"MODEL", "FILE"},
      {writesInto({"-o", "DIR", "the directory to write; it must not exist", {}, true}),
       positionOption(),
       strengthOption(),
       {"--dtype", "TYPE",
        "store all floating-point tensors as f32, bf16 or f16; default: each as it was",
        storageNames()}},
      "MODEL is a Hugging Face directory, FILE a patch that `ctxc patch` wrote for it,\n"
      "or the directory of an adapter that `ctxc evaluate` reads. A change that is small beside\n"
      "its weights is mostly lost in bf16: the command prints how much is lost, and --dtype f32\n"
      "avoids it. A patch holds for one token at its position, and an adapter is approximate: the\n"
      "directory's README.md says what was added, and so does the metadata of its weights.",
      "  ctxc apply gemma-3-270m patch.safetensors -o patched-model --dtype f32\n"
      "  ctxc apply gemma-3-270m all.safetensors --position 12 -o patched-model\n"
      "  ctxc apply gemma-3-270m persona -o persona-model --dtype f32\n",
      runApply};
}
