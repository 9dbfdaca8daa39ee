//===- Manual.h - man pages and shell completion of a table of commands ----===//
//
// Both say what `--help` says, from the same tables: an option that is declared is documented and
// completed.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_MANUAL_H
#define CTXC_TOOLS_COMMANDLINE_MANUAL_H

#include "tools/CommandLine/CommandLine.h"
#include <string>
#include <utility>
#include <vector>

namespace ctxc::driver {

/// What is said of the program, and not of one of its commands.
struct Overview {
  llvm::StringRef version;
  llvm::StringRef summary;     ///< one sentence
  llvm::StringRef description; ///< paragraphs
  llvm::StringRef exitCodes;
  /// Environment variables, and what they do.
  std::vector<std::pair<llvm::StringRef, llvm::StringRef>> environment;
  llvm::StringRef examples; ///< indented lines
};

/// A command's options, and those that every command takes.
std::vector<OptionSpec> optionsOf(const Command &command);

/// An option as it is written: "--try[=SEED]".
std::string labelOf(const OptionSpec &option);

/// "ctxc apply MODEL FILE -o DIR [options]"; "ctxc " is left out for a program of its own.
std::string synopsisOf(const Command &command);

/// ctxc(1).
void printManPage(const Overview &overview, llvm::ArrayRef<Command> commands,
                  llvm::raw_ostream &os);
/// ctxc-COMMAND(1).
void printManPage(const Overview &overview, const Command &command, llvm::raw_ostream &os);

/// The shells that completion is written for.
std::vector<llvm::StringRef> completedShells();
/// The script with which `shell` completes commands, options and those of their values that are
/// known words; elsewhere the shell offers files.
void printCompletion(llvm::StringRef shell, llvm::ArrayRef<Command> commands,
                     llvm::raw_ostream &os);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_MANUAL_H
