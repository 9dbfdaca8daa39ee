//===- Prefix.h - what attention keeps of the tokens in front of texts ----===//
#ifndef CTXC_DISTIL_PREFIX_H
#define CTXC_DISTIL_PREFIX_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

/// Fails where a layer keeps something else of a token than keys and values, of which prefixCache
/// knows nothing. Quick.
llvm::Error checkPrefixCache(const SplitModel &model);

/// What each attention of the model keeps of the adapter's prefix, as texts behind it see it: of
/// all its tokens, which the model has read with the adapter; or of those that are seen, which it
/// has read without (Adapter::seen); or the adapter's virtual entries. Errors: no prefix; those of
/// checkPrefixCache; positions that the model lacks.
llvm::Expected<std::vector<KeysAndValues>> prefixCache(SplitModel model, const Adapter &adapter);

} // namespace ctxc

#endif // CTXC_DISTIL_PREFIX_H
