//===- Commands.h - the subcommands of ctxc, one file each ----------------===//
#ifndef CTXC_TOOLS_CTXC_COMMANDS_H
#define CTXC_TOOLS_CTXC_COMMANDS_H

#include "CommandLine.h"

namespace ctxc::driver {

/// Exit codes, everywhere.
enum ExitCode {
  ExitGood = 0,    ///< controllable, output-only, verified, done
  ExitAgainst = 1, ///< a verdict against: rejected, undecided, a mismatch
  ExitBadInput = 2 ///< bad usage or input
};

Command checkCommand();
Command checkProofCommand();
Command verifyCommand();
Command patchCommand();
Command applyCommand();
Command compileCommand();
Command importCommand();
Command explainCommand();
Command inspectCommand();
Command experimentCommand();

/// Runs a command with the words of its line, and prints what goes wrong. Returns the exit code.
int runCommand(const Command &command, llvm::ArrayRef<llvm::StringRef> words);

/// One line a message: joined errors are printed one after the other. Returns the exit code.
int reportError(llvm::Error error);

/// `code`, or ExitBadInput where what was printed did not arrive: a script would read half of it
/// as all.
int flushed(int code);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_COMMANDS_H
