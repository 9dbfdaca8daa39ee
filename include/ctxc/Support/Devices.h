//===- Devices.h - the names of the kinds of devices ----------------------===//
#ifndef CTXC_SUPPORT_DEVICES_H
#define CTXC_SUPPORT_DEVICES_H

#include "llvm/ADT/StringExtras.h"

namespace ctxc {

constexpr const char *deviceNames[] = {
#define CTXC_DEVICE(NAME, TEXT, EXAMPLES) #TEXT,
#include "ctxc/Support/Devices.def"
};
constexpr const char *deviceExamples[] = {
#define CTXC_DEVICE(NAME, TEXT, EXAMPLES) EXAMPLES,
#include "ctxc/Support/Devices.def"
};

/// "a, b or c", for messages.
inline std::string anyOf(llvm::ArrayRef<llvm::StringRef> words) {
  return llvm::join(words.drop_back(), ", ") + (words.size() > 1 ? " or " : "") +
         words.back().str();
}
template <size_t count> std::string anyOf(const char *const (&words)[count]) {
  return anyOf(llvm::SmallVector<llvm::StringRef>(std::begin(words), std::end(words)));
}

} // namespace ctxc

#endif // CTXC_SUPPORT_DEVICES_H
