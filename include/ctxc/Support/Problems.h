//===- Problems.h - messages collected for one error ----------------------===//
#ifndef CTXC_SUPPORT_PROBLEMS_H
#define CTXC_SUPPORT_PROBLEMS_H

#include "ctxc/Support/Error.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace ctxc {

/// Collects problems, so that a user sees all of them at once; after the first fifty they are only
/// counted.
class Problems {
public:
  /// Every message begins with `prefix`.
  explicit Problems(llvm::StringRef prefix = "") : prefix(prefix) {}

  void add(const llvm::Twine &message) { messages.push_back((prefix + message).str()); }
  bool empty() const { return messages.empty(); }

  /// All messages as one error, and none afterwards.
  llvm::Error take() {
    llvm::Error errors = llvm::Error::success();
    for (const std::string &message : llvm::ArrayRef(messages).take_front(limit))
      errors = llvm::joinErrors(std::move(errors), makeError(message));
    if (messages.size() > limit)
      errors = llvm::joinErrors(std::move(errors),
                                makeError(prefix + "and " + llvm::Twine(messages.size() - limit) +
                                          " more problems of the kind"));
    messages.clear();
    return errors;
  }

private:
  static constexpr size_t limit = 50;
  std::string prefix;
  std::vector<std::string> messages;
};

} // namespace ctxc

#endif // CTXC_SUPPORT_PROBLEMS_H
