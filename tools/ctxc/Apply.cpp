// ctxc apply
#include "Commands.h"
#include "StoredPatch.h"
#include "ctxc/Export/ApplyPatch.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Expected<int> run(const Arguments &arguments) {
  llvm::StringRef directory = arguments.get("-o", "");
  auto file = readStoredPatch(arguments, arguments.positional(1));
  if (!file)
    return file.takeError();
  auto checkpoint = Checkpoint::open(arguments.positional(0));
  if (!checkpoint)
    return checkpoint.takeError();
  if (llvm::Error error = checkAgainst(**checkpoint, file->first, file->second))
    return std::move(error);
  std::optional<DType> storage;
  if (auto dtype = arguments.get("--dtype"))
    storage = storageNamed(*dtype);
  auto report = applyPatch(**checkpoint, file->first, file->second, directory, storage);
  if (!report)
    return report.takeError();
  out() << printableLine(directory) << ": " << counted(report->patched, "tensor")
        << " patched; rounding them to "
        << "their storage type took " << llvm::format("%.2g", 100 * report->relativeRounding)
        << " % of the patch\n";
  out().flush();
  err() << "ctxc: warning: " << staleness(file->second) << "; README.md in "
        << printableLine(directory) << " says how to use it\n";
  return ExitGood;
}

Command driver::applyCommand() {
  return {
      "apply",
      "write a checkpoint with a patch added, which other programs can load",
      {"MODEL", "FILE"},
      {writesInto({"-o", "DIR", "the directory to write; it must not exist", {}, true}),
       positionOption(),
       {"--dtype", "TYPE",
        "store all floating-point tensors as f32, bf16 or f16; default: each as it was",
        storageNames()}},
      "MODEL is a Hugging Face directory, FILE a patch that `ctxc patch` wrote for it. A patch\n"
      "that is small beside its weights is mostly lost in bf16: the command prints how much is\n"
      "lost, and --dtype f32 avoids it. A patch holds for one token at its position: the "
      "directory's\n"
      "README.md says which, and so does the metadata of its weights.",
      "  ctxc apply gemma-3-270m patch.safetensors -o patched-model --dtype f32\n"
      "  ctxc apply gemma-3-270m all.safetensors --position 12 -o patched-model\n",
      run};
}
