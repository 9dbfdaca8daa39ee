//===- JointPatch.h - ctxc patch --joint and ctxc verify --joint ----------===//
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

/// Fails where an option, of `all` options of ctxc verify or ctxc inspect, does not go with
/// --joint. Quick.
llvm::Error checkJointRun(const Arguments &arguments, llvm::ArrayRef<OptionSpec> all);

/// Of ctxc verify --joint.
OptionSpec goOnOption();

/// Lets one patch grow while the model generates, and has the final weights read all of it.
llvm::Expected<int> verifyJoint(const Arguments &arguments, Model &model, VerifySettings &settings);
/// Does the same, and shows what such a patch consists of.
llvm::Expected<int> inspectJoint(const Arguments &arguments, Model &model,
                                 VerifySettings &settings);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_JOINTPATCH_H
