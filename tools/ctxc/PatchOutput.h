//===- PatchOutput.h - the formats that `ctxc patch` writes ---------------===//
#ifndef CTXC_TOOLS_CTXC_PATCHOUTPUT_H
#define CTXC_TOOLS_CTXC_PATCHOUTPUT_H

#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// --format and -o.
std::vector<OptionSpec> patchOutputOptions();

/// Fails where -o cannot be written in the format, before the work is done.
llvm::Error checkPatchOutput(const Arguments &arguments);

/// Writes -o. Where the format is an adapter that cannot hold the patch, the error names the plan
/// that it could hold.
llvm::Error writePatchOutput(const Arguments &arguments, Model &model, const Patch &patch,
                             const PatchMetadata &metadata);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_PATCHOUTPUT_H
