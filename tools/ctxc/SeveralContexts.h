//===- SeveralContexts.h - ctxc distil --contexts: one adapter for several ===//
#ifndef CTXC_TOOLS_CTXC_SEVERALCONTEXTS_H
#define CTXC_TOOLS_CTXC_SEVERALCONTEXTS_H

#include "DistilTexts.h"

namespace ctxc::driver {

/// --contexts.
OptionSpec contextsOption();

/// Fails where --contexts is given with an option that applies to one context. Quick.
llvm::Error checkSeveralOptions(const Arguments &arguments);

/// Fits `request`, which has settings and no texts, to all contexts of the file together, and to
/// each alone for comparison; writes the adapter of all and the card.
llvm::Expected<int> distilSeveral(const Arguments &arguments, DistilRequest request);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_SEVERALCONTEXTS_H
