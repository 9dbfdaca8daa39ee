// Runs a command: parses its command line, prints its errors, and returns the exit code.
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Session/Options.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/CommandLine.h"
#include "tools/CommandLine/Flags.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/OutputGuard.h"
#include "tools/CommandLine/Shard.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

/// The text of an error, in which an option that is wrong is named by its flag.
static std::string messageOf(const llvm::ErrorInfoBase &info) {
  if (!info.isA<OptionError>())
    return info.message();
  const auto &error = static_cast<const OptionError &>(info);
  return (rowOf(error.option).flag + ": " + error.problem).str();
}

int ctxc::driver::reportError(llvm::Error error) {
  constexpr int most = 50;
  int code = ExitAgainst, count = 0;
  llvm::handleAllErrors(
      std::move(error), [](const VerdictAgainst &) { /* its diagnostics are printed */ },
      [&](const llvm::ErrorInfoBase &info) {
        code = ExitBadInput;
        if (++count > most)
          return;
        std::string message = messageOf(info);
        StringRef kind = "error", rest = message;
        do {
          auto [line, others] = rest.split("\nnote: ");
          err() << "ctxc: " << kind << ": " << printableLine(withFlags(line)) << "\n";
          kind = "note";
          rest = others;
        } while (!rest.empty());
      });
  if (count > most)
    err() << "ctxc: error: and " << counted(count - most, "more error") << "\n";
  return code;
}

int ctxc::driver::runCommand(const Command &command, llvm::ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    printHelp(command, out());
    return flushed(ExitGood);
  }
  llvm::Expected<Arguments> arguments = Arguments::parse(command, words);
  if (!arguments)
    return reportError(arguments.takeError());
  if (llvm::Error error = joinRanks(command, *arguments, words))
    return endCommand(std::move(error));
  OutputGuard guard(command, *arguments, pluginFiles());
  if (!isServing()) // the others write nothing
    if (llvm::Error error = guard.checkOutputs())
      return endCommand(std::move(error));
  llvm::Expected<int> code = command.run(*arguments);
  if (code)
    if (llvm::Error error = checkMappedFiles())
      code = std::move(error);
  return flushed(endCommand(std::move(code)));
}
