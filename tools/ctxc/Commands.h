//===- Commands.h - the subcommands of ctxc, one file each ----------------===//
#ifndef CTXC_TOOLS_CTXC_COMMANDS_H
#define CTXC_TOOLS_CTXC_COMMANDS_H

#include "tools/CommandLine/CommandLine.h"
#include "tools/CommandLine/Manual.h"

namespace ctxc::driver {

Command checkCommand();
Command checkProofCommand();
Command verifyCommand();
Command patchCommand();
Command applyCommand();
Command batchCommand();
Command compileCommand();
/// `ctxc compile --print-pipeline`.
llvm::Expected<int> printPipeline(const Arguments &arguments);
Command importCommand();
Command explainCommand();
Command inspectCommand();
Command distilCommand();
Command evaluateCommand();
Command experimentCommand();
Command tuneCommand();
Command manCommand();
Command completionCommand();

/// All of them, as `ctxc --help` lists them; and what it says besides.
std::vector<Command> allCommands();
const Overview &overview();

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_COMMANDS_H
