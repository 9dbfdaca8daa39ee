//===- DistilEntries.h - ctxc distil --entries ----------------------------===//
#ifndef CTXC_TOOLS_CTXC_DISTILENTRIES_H
#define CTXC_TOOLS_CTXC_DISTILENTRIES_H

#include "Objective.h"

namespace ctxc::driver {

OptionSpec entriesOption();
/// The number of --entries; 0 where it is left open, or is none.
int64_t givenEntries(const Arguments &arguments);

/// Fails where the option has no such value, or stands beside options that have no meaning with it.
llvm::Error checkEntriesOptions(const Arguments &arguments);
/// Whether the options ask for entries, or leave the choice to the model.
bool mayHaveEntries(const Arguments &arguments);

/// What stands in the context's place.
struct EntriesChoice {
  std::optional<int64_t> count; ///< of virtual entries; 0: chosen by texts; none: weights change
  std::string whyNot;           ///< where weights change since the model cannot have entries
};
/// Fails where the options ask for entries that the model, or PEFT, has no place for.
llvm::Expected<EntriesChoice> chooseForm(const Arguments &arguments, Model &model);

/// So many entries (EntriesChoice) in the place of changed weights.
llvm::Expected<Fitted> fitEntries(int64_t count, Model &model, const DistilRequest &request);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_DISTILENTRIES_H
