//===- CommandLine.h - subcommands and their options, declared as tables ---===//
//
// A parser of our own, since llvm::cl would show every option of every LLVM library that is linked
// in. Accepted are `--name VALUE`, `--name=VALUE`, `-o VALUE`, flags without a value, and `--`
// before arguments that start with a dash. All mistakes of a command line are reported at once.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H
#define CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>
#include <vector>

namespace ctxc::driver {

/// What is done with the file or folder that a value names.
enum class PathUse {
  None,   ///< it names none; in a text, @FILE is read all the same
  Input,  ///< is read; a folder, with what is in it
  Output, ///< a file that is written; `-`, where a command knows it, is the screen
  Folder, ///< files are written into it, or it is made; a command may write a file there, too
};

/// One option of a subcommand.
struct OptionSpec {
  llvm::StringRef name;  ///< with its dashes: "--update", "-o"
  llvm::StringRef value; ///< the name of its value in the help; empty for a flag
  llvm::StringRef help;  ///< may have several lines
  std::vector<llvm::StringRef> choices = {}; ///< the values that are allowed, if not all are
  bool required = false;
  /// The value may be left out; if given, it must follow `=`: `--try`, `--try=7`.
  bool valueOptional = false;
  /// May be given several times: Arguments::all().
  bool repeatable = false;
  /// Its value follows its name directly, as in `-Werror`.
  bool joined = false;
  /// May be given instead of the positional arguments and of required options.
  bool insteadOfPositionals = false;
  PathUse path = PathUse::None;
};

/// `option`, whose value is a file or folder that is read; a file that is written; a folder.
OptionSpec reads(OptionSpec option);
OptionSpec writes(OptionSpec option);
OptionSpec writesInto(OptionSpec option);

/// Whether a value, or a positional argument, of this name in the help is a path: MODEL, FILE, DIR
/// and their like. Each such option is declared by one of the three functions above.
bool isPathWord(llvm::StringRef word);

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

/// A command line that has been checked against its Command.
class Arguments {
public:
  /// Fails with all mistakes: unknown options (with the closest known one), missing and unexpected
  /// values, values that are not allowed, options that are given twice, missing and surplus
  /// arguments.
  static llvm::Expected<Arguments> parse(const Command &command,
                                         llvm::ArrayRef<llvm::StringRef> words);

  /// A MODEL that is a name on the Hugging Face hub is its place in the cache.
  llvm::StringRef positional(unsigned index) const { return positionals[index]; }
  size_t count() const { return positionals.size(); }
  bool has(llvm::StringRef option) const { return values.count(option); }
  std::optional<llvm::StringRef> get(llvm::StringRef option) const;
  llvm::StringRef get(llvm::StringRef option, llvm::StringRef otherwise) const;
  /// Every value of a repeatable option, in order.
  llvm::ArrayRef<llvm::StringRef> all(llvm::StringRef option) const;
  /// A copy in which `option` has the value `value`, which must outlive it.
  Arguments with(llvm::StringRef option, llvm::StringRef value) const;
  /// The value of an integer option, in [low, high]; `otherwise` where the option is not given.
  llvm::Expected<int64_t> integer(llvm::StringRef option, int64_t low, int64_t high,
                                  int64_t otherwise) const;

private:
  std::vector<std::shared_ptr<const std::string>> models; ///< what positionals point to
  std::vector<llvm::StringRef> positionals;
  llvm::StringMap<std::vector<llvm::StringRef>> values; ///< one or more each
};

/// Prints `ctxc NAME --help`.
void printHelp(const Command &command, llvm::raw_ostream &os);

/// The exit codes of all commands.
enum ExitCode {
  ExitGood = 0,    ///< controllable, output-only, verified, done
  ExitAgainst = 1, ///< a negative verdict: rejected, undecided, a mismatch
  ExitBadInput = 2 ///< bad usage or input
};

/// Runs a command with the words of its command line, and prints errors. Returns the exit code.
int runCommand(const Command &command, llvm::ArrayRef<llvm::StringRef> words);

/// Prints one line for each message, also for those of joined errors; lines of a message that start
/// with "note: " are notes. Returns the exit code.
int reportError(llvm::Error error);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_COMMANDLINE_H
