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

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_COMMANDS_H
