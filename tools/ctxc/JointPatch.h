//===- JointPatch.h - ctxc patch --joint ----------------------------------===//
#ifndef CTXC_TOOLS_CTXC_JOINTPATCH_H
#define CTXC_TOOLS_CTXC_JOINTPATCH_H

#include "ContextTexts.h"

namespace ctxc::driver {

/// --joint and the options that belong to it alone.
std::vector<OptionSpec> jointOptions();

/// Fails where an option is given without --joint, or, of `all` options of the command, does not go
/// with it. Quick.
llvm::Error checkJointOptions(const Arguments &arguments, llvm::ArrayRef<OptionSpec> all);

/// Makes one patch for all tokens of some texts, has the patched model read them, and writes it.
llvm::Expected<int> runJoint(const Arguments &arguments);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_JOINTPATCH_H
