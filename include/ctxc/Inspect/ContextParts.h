//===- ContextParts.h - a context cut into parts to be left out -----------===//
#ifndef CTXC_INSPECT_CONTEXTPARTS_H
#define CTXC_INSPECT_CONTEXTPARTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace ctxc {

/// What a context is cut into.
enum class Grain {
  Token,
  Sentence ///< ends at a token whose last character (quotes and brackets aside) is `.`, `!`, `?`
           ///< or `…`, or that has a line break
};

/// The positions first, first + 1, …, last of the context.
struct PositionRange {
  int64_t first = 0, last = 0;
};

/// Cuts `pieces`, the spellings of the context's tokens, into at most `limit` (at least 1) parts
/// that together are the whole context; where there would be more, equally many neighbours are
/// joined.
std::vector<PositionRange> cutContext(llvm::ArrayRef<std::string> pieces, Grain grain,
                                      size_t limit);

} // namespace ctxc

#endif // CTXC_INSPECT_CONTEXTPARTS_H
