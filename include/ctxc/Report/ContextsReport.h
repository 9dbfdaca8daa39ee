//===- ContextsReport.h - the card of an adapter of several contexts ------===//
#ifndef CTXC_REPORT_CONTEXTSREPORT_H
#define CTXC_REPORT_CONTEXTSREPORT_H

#include "ctxc/Report/CardReport.h"

namespace ctxc {

/// One of the contexts: how good the common adapter is in its place, and how good the one that was
/// fitted to its texts alone is, in the same way and on the same texts.
struct ContextCard {
  std::string name;
  CardSettings settings;
  Card card, own;
  /// How many points of the share the others cost.
  double lost() const { return own.all.share() - card.all.share(); }
};

/// A row for each context. `fit` is the common adapter's. At least one card.
void writeContexts(llvm::raw_ostream &os, llvm::ArrayRef<ContextCard> cards,
                   const CardSettings::Fit &fit);
/// `format` is "ctxc-card", and `contexts` has the members of a card for each of them.
llvm::json::Value contextsJson(llvm::ArrayRef<ContextCard> cards, const CardSettings::Fit &fit);

} // namespace ctxc

#endif // CTXC_REPORT_CONTEXTSREPORT_H
