// The context compiler's driver: finds the subcommand, runs it, and gives its
// exit code. What each one does is in its own file.
#include "Commands.h"
#include "Session.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace ctxc::driver;
using llvm::StringRef;

static void printOverview(llvm::ArrayRef<Command> commands, llvm::raw_ostream &os) {
  os << "ctxc, the context compiler: replaces what a transformer read before a token by a change "
        "of "
        "its\nweights that gives the same output, and verifies that it does\n\n"
        "usage: ctxc COMMAND ...\n\ncommands:\n";
  for (const Command &command : commands)
    os << "  " << llvm::left_justify(command.name, 12) << command.summary << "\n";
  os << "\nMODEL is a Hugging Face directory (config.json, model.safetensors or its sharded "
        "index,\n"
        "tokenizer.json or tokenizer.model), a .gguf file, or an .mlir file in the xf dialect.\n\n"
        "every command takes --load-dialect-plugin=FILE, a shared library with ops of another\n"
        "dialect (docs/new-op.md).\n\n"
        "exit codes: 0 good (controllable, output-only, verified); 1 a verdict against (rejected,\n"
        "undecided, a mismatch); 2 bad usage or input\n\n"
        "examples:\n"
        "  ctxc check examples/models/gemma3-kjv-1m\n"
        "  ctxc verify examples/models/gemma3-kjv-1m --prompt 'And David said' --generate 20\n"
        "  ctxc verify --help\n";
}

/// One line a message: joined errors are printed one after the other. Returns the
/// exit code.
static int report(llvm::Error error) {
  llvm::outs().flush(); // what was found before it comes before it
  int code = ExitAgainst;
  llvm::handleAllErrors(
      std::move(error), [](const VerdictAgainst &) { /* its diagnostics are printed */ },
      [&](const llvm::ErrorInfoBase &info) {
        code = ExitBadInput;
        llvm::SmallVector<StringRef> lines;
        std::string message = info.message();
        StringRef(message).split(lines, '\n', -1, false);
        for (StringRef line : lines)
          llvm::errs() << "ctxc: error: " << line << "\n";
      });
  return code;
}

/// What was printed must have arrived, or a script reads half of it as all.
static int flushed(int code) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return code;
  std::string message = llvm::outs().error().message();
  llvm::outs().clear_error();
  llvm::errs() << "ctxc: error: standard output: " << message << "\n";
  return ExitBadInput;
}

static int runCommand(const Command &command, llvm::ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    printHelp(command, llvm::outs());
    return ExitGood;
  }
  llvm::Expected<Arguments> arguments = Arguments::parse(command, words);
  if (!arguments)
    return report(arguments.takeError());
  llvm::Expected<int> code = command.run(*arguments);
  return code ? *code : report(code.takeError());
}

int main(int argc, char **argv) {
  ctxc::installMappedFileGuard();
  const std::vector<Command> commands = {checkCommand(),  checkProofCommand(), verifyCommand(),
                                         patchCommand(),  applyCommand(),      compileCommand(),
                                         importCommand(), explainCommand()};
  std::vector<StringRef> words(argv + 1, argv + argc);
  if (llvm::Error error = loadDialectPlugins(words))
    return report(std::move(error));
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    printOverview(commands, words.empty() ? llvm::errs() : llvm::outs());
    return flushed(words.empty() ? ExitBadInput : ExitGood);
  }
  if (words[0] == "--version") {
    llvm::outs() << "ctxc " CTXC_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
    return flushed(ExitGood);
  }
  auto found = llvm::find_if(commands, [&](const Command &c) { return c.name == words[0]; });
  if (found == commands.end()) {
    std::vector<StringRef> names;
    for (const Command &command : commands)
      names.push_back(command.name);
    llvm::errs() << "ctxc: error: unknown command '" << words[0] << "'"
                 << suggestion(words[0], names) << "\n";
    return ExitBadInput;
  }
  return flushed(runCommand(*found, llvm::ArrayRef(words).drop_front()));
}
