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
  Sentence ///< ends with the token that has a `.`, `!`, `?` or `…` last, quotes and brackets
           ///< aside, or a line break
};

/// Positions first, first + 1, …, last of the context.
struct PositionRange {
  int64_t first = 0, last = 0;
};

/// Cuts `pieces`, the spellings of the context's tokens, into at most `limit` (at least 1) parts
/// that together are all of it; where there are more, neighbours are joined, as many each.
std::vector<PositionRange> cutContext(llvm::ArrayRef<std::string> pieces, Grain grain,
                                      size_t limit);

} // namespace ctxc

#endif // CTXC_INSPECT_CONTEXTPARTS_H
