//===- PatchOutput.h - the formats that `ctxc patch` writes ---------------===//
#ifndef CTXC_TOOLS_CTXC_PATCHOUTPUT_H
#define CTXC_TOOLS_CTXC_PATCHOUTPUT_H

#include "ctxc/Checkpoint/DType.h"
#include "tools/CommandLine/ModelArguments.h"

namespace ctxc::driver {

/// The options --format, --factors and -o.
std::vector<OptionSpec> patchOutputOptions();

/// Fails before the work is done where the file of -o cannot be written in the format.
llvm::Error checkPatchOutput(const Arguments &arguments);

/// The type of --factors.
DType factorsType(const Arguments &arguments);

/// "; rounded to bf16, which takes 0.23 % of a patch's changes at most"; "" for float32.
std::string roundingText(DType factors, double rounding);

/// Whether the patches of --positions go into one file.
bool isOneFile(const Arguments &arguments);

/// Writes the file of -o. Where an adapter cannot hold the patch, the error names a plan whose
/// patch it could hold.
llvm::Error writePatchOutput(const Arguments &arguments, Model &model, const Patch &patch,
                             const PatchMetadata &metadata);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_PATCHOUTPUT_H
