//===- CommandLine.h - subcommands and their options, declared as tables ---===//
//
// llvm::cl would show every option of every LLVM library that is linked in; this
// knows what is declared here and nothing else. Accepted: `--name VALUE`,
// `--name=VALUE`, `-o VALUE`, flags without a value, `--` before arguments that
// start with a dash. Every mistake of a command line is reported at once.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H
#define CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <vector>

namespace ctxc::driver {

/// One option of a subcommand.
struct OptionSpec {
  llvm::StringRef name;  ///< with its dashes: "--update", "-o"
  llvm::StringRef value; ///< what stands for its value in help; empty for a flag
  llvm::StringRef help;  ///< may have several lines
  std::vector<llvm::StringRef> choices = {}; ///< where not empty, the values allowed
  bool required = false;
  /// Its value may be left out, and then comes with `=` alone: `--try`, `--try=7`.
  bool valueOptional = false;
  /// May be given several times: Arguments::all().
  bool repeatable = false;
  /// Its value follows its name directly, as in `-Werror`.
  bool joined = false;
  /// Given in place of the positional arguments and of required options.
  bool insteadOfPositionals = false;
};

class Arguments;

/// A subcommand.
struct Command {
  llvm::StringRef name;
  llvm::StringRef summary;                  ///< one line, for `ctxc --help`
  std::vector<llvm::StringRef> positionals; ///< required, but for "[NAME]"
  std::vector<OptionSpec> options;
  llvm::StringRef description; ///< for `ctxc NAME --help`
  llvm::StringRef examples;    ///< indented lines
  /// Returns the exit code, or an error, which is exit code 2.
  llvm::Expected<int> (*run)(const Arguments &arguments);
};

/// A command line after it was checked against its Command.
class Arguments {
public:
  /// Fails with every mistake found: unknown options (with the nearest known
  /// one), missing and unexpected values, values outside the choices, an option
  /// given twice, missing and surplus arguments.
  static llvm::Expected<Arguments> parse(const Command &command,
                                         llvm::ArrayRef<llvm::StringRef> words);

  llvm::StringRef positional(unsigned index) const { return positionals[index]; }
  size_t count() const { return positionals.size(); }
  bool has(llvm::StringRef option) const { return values.count(option); }
  std::optional<llvm::StringRef> get(llvm::StringRef option) const;
  llvm::StringRef get(llvm::StringRef option, llvm::StringRef otherwise) const;
  /// Every value of a repeatable option, in order.
  llvm::ArrayRef<llvm::StringRef> all(llvm::StringRef option) const;
  /// The option's integer in [low, high]; `otherwise` where it is not given.
  llvm::Expected<int64_t> integer(llvm::StringRef option, int64_t low, int64_t high,
                                  int64_t otherwise) const;

private:
  std::vector<llvm::StringRef> positionals;
  llvm::StringMap<std::vector<llvm::StringRef>> values; ///< one or more each
};

/// `ctxc NAME --help`.
void printHelp(const Command &command, llvm::raw_ostream &os);

/// Exit codes, everywhere.
enum ExitCode {
  ExitGood = 0,    ///< controllable, output-only, verified, done
  ExitAgainst = 1, ///< a verdict against: rejected, undecided, a mismatch
  ExitBadInput = 2 ///< bad usage or input
};

/// Runs a command with the words of its line, and prints what goes wrong. Returns the exit code.
int runCommand(const Command &command, llvm::ArrayRef<llvm::StringRef> words);

/// One line a message: joined errors are printed one after the other, and lines of a message that
/// start with "note: " as notes. Returns the exit code.
int reportError(llvm::Error error);

/// `code`, or ExitBadInput where what was printed did not arrive: a script would read half of it
/// as all.
int flushed(int code);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H
