//===- CodeArguments.h - the options of `ctxc compile` --------------------===//
#ifndef CTXC_TOOLS_CTXC_CODEARGUMENTS_H
#define CTXC_TOOLS_CTXC_CODEARGUMENTS_H

#include "ctxc/Report/CostReport.h"
#include "ctxc/Session/Compile.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// From --emit, --target, --prefix, --rows, --round-prompts and --remarks. Of --emit=xf, patch and
/// cost, which are no stage of code, the stage is not to be read.
llvm::Expected<CompileOptions> compileOptions(const Arguments &arguments);

/// From --visible, --bandwidth and --rate, which --emit=cost alone has.
llvm::Expected<CostOptions> costOptions(const Arguments &arguments);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CODEARGUMENTS_H
