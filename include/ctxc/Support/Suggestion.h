//===- Suggestion.h - "did you mean": the known word nearest to another ----===//
#ifndef CTXC_SUPPORT_SUGGESTION_H
#define CTXC_SUPPORT_SUGGESTION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace ctxc {

/// `; did you mean 'X'?` for the candidate nearest to `word`, or nothing.
std::string suggestion(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace ctxc

#endif // CTXC_SUPPORT_SUGGESTION_H
