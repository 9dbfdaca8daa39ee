//===- CardPage.h - an adapter's card as an HTML page ----------------------===//
#ifndef CTXC_CARDPAGE_CARDPAGE_H
#define CTXC_CARDPAGE_CARDPAGE_H

#include "ctxc/Report/CardReport.h"

namespace ctxc {

/// Writes one self-contained file (ctxc/Page/Frame.h). `command` is the command that writes it.
void writeCardPage(llvm::raw_ostream &os, llvm::StringRef command, const Card &card,
                   const CardSettings &settings);

} // namespace ctxc

#endif // CTXC_CARDPAGE_CARDPAGE_H
