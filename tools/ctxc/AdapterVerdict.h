//===- AdapterVerdict.h - adapters that are better not written ------------===//
#ifndef CTXC_TOOLS_CTXC_ADAPTERVERDICT_H
#define CTXC_TOOLS_CTXC_ADAPTERVERDICT_H

#include "OpenedContext.h"

namespace ctxc::driver {

OptionSpec anywayOption();

/// An adapter, and what it was judged by.
struct JudgedAdapter {
  const Adapter &adapter;
  const Card &card;
  const CardSettings &settings;
  const EvaluateRequest &about;
};

/// Whether the adapter does harm and --anyway is not given: then the card and the reason are
/// printed. An adapter that recovers little is only warned about. `fitted` are the texts that were
/// fitted.
llvm::Expected<bool> isRefused(const Arguments &arguments, Opened &opened,
                               const JudgedAdapter &judged, llvm::ArrayRef<TextSequence> fitted);

/// Warns where a card says that the adapter does harm, or recovers little.
void warnOfVerdict(const Card &card, const CardSettings &settings);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_ADAPTERVERDICT_H
