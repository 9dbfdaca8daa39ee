// Runs a command: parses its command line, prints its errors, and returns the exit code.
#include "ctxc/Session/Options.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/CommandLine.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

/// The flag that sets an option.
static StringRef flagOf(Option option) {
  switch (option) {
  case Option::Storage:
    return "--dtype";
  case Option::Weights:
    return "--weights";
  case Option::Parameters:
    return "--plan";
  case Option::StartLayer:
    return "--start-layer";
  case Option::RoundedPrompts:
    return "--round-prompts";
  case Option::Engine:
  case Option::CompileTarget:
    return "--target";
  case Option::Prefix:
    return "--prefix";
  case Option::Rows:
    return "--rows";
  }
  llvm_unreachable("an option of no known kind");
}

/// The text of an error, with options named by their flags.
static std::string messageOf(const llvm::ErrorInfoBase &info) {
  if (!info.isA<OptionError>())
    return info.message();
  const auto &error = static_cast<const OptionError &>(info);
  return (flagOf(error.option) + ": " + error.problem).str();
}

int ctxc::driver::reportError(llvm::Error error) {
  llvm::outs().flush(); // what was printed before the error comes first
  int code = ExitAgainst;
  llvm::handleAllErrors(
      std::move(error), [](const VerdictAgainst &) { /* its diagnostics are printed */ },
      [&](const llvm::ErrorInfoBase &info) {
        code = ExitBadInput;
        llvm::SmallVector<StringRef> lines;
        std::string message = messageOf(info);
        StringRef(message).split(lines, '\n', -1, false);
        for (StringRef line : lines) {
          StringRef kind = line.consume_front("note: ") ? "note" : "error";
          llvm::errs() << "ctxc: " << kind << ": " << printable(line) << "\n";
        }
      });
  return code;
}

int ctxc::driver::flushed(int code) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return code;
  std::string message = llvm::outs().error().message();
  llvm::outs().clear_error();
  llvm::errs() << "ctxc: error: standard output: " << message << "\n";
  return ExitBadInput;
}

int ctxc::driver::runCommand(const Command &command, llvm::ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    printHelp(command, llvm::outs());
    return flushed(ExitGood);
  }
  llvm::Expected<Arguments> arguments = Arguments::parse(command, words);
  if (!arguments)
    return reportError(arguments.takeError());
  llvm::Expected<int> code = command.run(*arguments);
  return flushed(code ? *code : reportError(code.takeError()));
}
