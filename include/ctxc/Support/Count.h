//===- Count.h - a number with its noun in singular or plural ---------------===//
#ifndef CTXC_SUPPORT_COUNT_H
#define CTXC_SUPPORT_COUNT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace ctxc {

/// "1 token", "2 tokens", "3 patches".
inline std::string counted(int64_t count, llvm::StringRef one) {
  bool hisses = one.ends_with("ch") || one.ends_with("s") || one.ends_with("x");
  llvm::StringRef ending = count == 1 ? "" : hisses ? "es" : "s";
  return (llvm::Twine(count) + " " + one + ending).str();
}

} // namespace ctxc

#endif // CTXC_SUPPORT_COUNT_H
