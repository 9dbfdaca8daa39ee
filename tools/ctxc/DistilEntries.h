//===- DistilEntries.h - ctxc distil --entries ----------------------------===//
#ifndef CTXC_TOOLS_CTXC_DISTILENTRIES_H
#define CTXC_TOOLS_CTXC_DISTILENTRIES_H

#include "Objective.h"

namespace ctxc::driver {

OptionSpec entriesOption();

/// Fails where the option has no such value, or stands beside options that have no meaning with it.
llvm::Error checkEntriesOptions(const Arguments &arguments);
/// Fails where the option is given, and the model cannot have entries, or PEFT has no place for
/// them.
llvm::Error checkEntriesOf(const Arguments &arguments, Model &model);

/// The entries that `option` asks for, in the place of changed weights.
llvm::Expected<Fitted> fitEntries(llvm::StringRef option, Model &model,
                                  const DistilRequest &request);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_DISTILENTRIES_H
