//===- ContextParts.h - divides a context into parts that are left out ----===//
#ifndef CTXC_INSPECT_CONTEXTPARTS_H
#define CTXC_INSPECT_CONTEXTPARTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace ctxc {

/// Into what a context is divided.
enum class Grain {
  Token,
  Sentence ///< ends at a token whose last character (quotes and brackets aside) is `.`, `!`, `?`
           ///< or `…`, or that has a line break
};

/// The positions first, first + 1, …, last of the context.
struct PositionRange {
  int64_t first = 0, last = 0;
};

/// Divides `texts`, what the context's tokens stand for, into at most `limit` (at least 1) parts
/// that together are the whole context. If there would be more, equal numbers of neighbours are
/// joined.
std::vector<PositionRange> cutContext(llvm::ArrayRef<std::string> texts, Grain grain, size_t limit);

} // namespace ctxc

#endif // CTXC_INSPECT_CONTEXTPARTS_H
