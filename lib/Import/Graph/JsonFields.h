// Typed members of untrusted JSON objects: what is missing or of another kind is an error that
// names it.
#ifndef CTXC_IMPORT_JSONFIELDS_H
#define CTXC_IMPORT_JSONFIELDS_H

#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Support/Error.h"

namespace ctxc::pt2 {

/// The member `name` of `object`; messages begin with `where`.
inline llvm::Expected<JsonView> objectIn(JsonView object, llvm::StringRef name,
                                         const llvm::Twine &where) {
  if (JsonView member = object[name]; member.isObject())
    return member;
  return makeError(where + ": expected an object '" + name + "'");
}

inline llvm::Expected<JsonView> arrayIn(JsonView object, llvm::StringRef name,
                                        const llvm::Twine &where) {
  if (JsonView member = object[name]; member.isArray())
    return member;
  return makeError(where + ": expected an array '" + name + "'");
}

inline llvm::Expected<llvm::StringRef> textIn(JsonView object, llvm::StringRef name,
                                              const llvm::Twine &where) {
  if (std::optional<llvm::StringRef> member = object[name].text())
    return *member;
  return makeError(where + ": expected a string '" + name + "'");
}

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_JSONFIELDS_H
