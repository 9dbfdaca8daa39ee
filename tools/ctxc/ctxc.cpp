// The main program: finds the subcommand, runs it, and returns its exit code. Each subcommand has a
// file of its own.
#include "Commands.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "ctxc/Support/Suggestion.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Programs.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

const Overview &driver::overview() {
  static const Overview overview = {
      CTXC_VERSION,
      "the context compiler: replaces the text that a transformer read before a token by a change\n"
      "of its weights that gives the same output, and verifies that it does",
      "MODEL is a Hugging Face directory (config.json, model.safetensors or its sharded index,\n"
      "tokenizer.json or tokenizer.model), a .gguf file, an exported program (.ctxc, or torch's\n"
      ".pt2), or an .mlir file in the xf dialect.\n\n"
      "Every command takes --load-dialect-plugin=FILE, a shared library with ops of another\n"
      "dialect (docs/new-op.md).",
      "0 good (controllable, output-only, verified); 1 bad (rejected, undecided, a mismatch);\n"
      "2 bad usage or input",
      {{"CTXC_KERNEL_CACHE", "`off` compiles every kernel again, and caches none."},
       {"CTXC_KERNEL_OPT",
        "LLVM's optimisation level for kernels that run here, 0 to 3 (the default)."},
       {"CTXC_PYTHON", "A Python with matplotlib, with which `ctxc experiment` draws."},
       {"NO_COLOR", "If it is set, nothing is coloured."},
       {"XDG_CACHE_HOME", "Kernels are cached below it, in `ctxc/kernels`; default ~/.cache."}},
      "  ctxc check examples/models/gemma3-kjv-1m\n"
      "  ctxc verify examples/models/gemma3-kjv-1m --prompt 'And David said' --generate 20\n"
      "  ctxc verify --help\n"};
  return overview;
}

std::vector<Command> driver::allCommands() {
  return {checkCommand(),      checkProofCommand(), verifyCommand(),  patchCommand(),
          batchCommand(),      applyCommand(),      compileCommand(), importCommand(),
          explainCommand(),    inspectCommand(),    distilCommand(),  evaluateCommand(),
          experimentCommand(), tuneCommand(),       manCommand(),     completionCommand()};
}

static void printOverview(llvm::ArrayRef<Command> commands, llvm::raw_ostream &os) {
  os << "ctxc, " << overview().summary << "\n\nusage: ctxc COMMAND ...\n\ncommands:\n";
  for (const Command &command : commands)
    os << "  " << llvm::left_justify(command.name, 12) << command.summary << "\n";
  os << "\n"
     << overview().description << "\n\nexit codes: " << overview().exitCodes << "\n\nexamples:\n"
     << overview().examples;
}

/// Runs the subcommand that the words name, and returns its exit code.
static int run(std::vector<StringRef> words) {
  const std::vector<Command> commands = allCommands();
  if (llvm::Error error = loadDialectPlugins(words))
    return reportError(std::move(error));
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    printOverview(commands, words.empty() ? err() : out());
    return words.empty() ? ExitBadInput : ExitGood;
  }
  if (words[0] == "--version") {
    out() << "ctxc " CTXC_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
    return ExitGood;
  }
  auto found = llvm::find_if(commands, [&](const Command &c) { return c.name == words[0]; });
  if (found != commands.end())
    return runCommand(*found, llvm::ArrayRef(words).drop_front());
  std::vector<StringRef> names;
  for (const Command &command : commands)
    names.push_back(command.name);
  return reportError(makeError("unknown command '" + words[0] + "'" + suggestion(words[0], names)));
}

int ctxc::runCtxc(int argc, char **argv) {
  beginProgram();
  ctxc::installMappedFileGuard();
  ctxc::installMemoryGuard();
  return flushed(run(std::vector<StringRef>(argv + 1, argv + argc)));
}
