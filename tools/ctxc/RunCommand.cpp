// How a command runs: its line is parsed, what goes wrong printed, and the exit code given.
#include "Commands.h"
#include "Session.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc::driver;
using llvm::StringRef;

int ctxc::driver::reportError(llvm::Error error) {
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
