// Typed members of untrusted JSON objects: what is missing or of another kind is an error that
// names it.
#ifndef CTXC_IMPORT_JSONFIELDS_H
#define CTXC_IMPORT_JSONFIELDS_H

#include "ctxc/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace ctxc::pt2 {

/// The member `name` of `object`; messages begin with `where`.
inline llvm::Expected<const llvm::json::Object *>
objectIn(const llvm::json::Object &object, llvm::StringRef name, const llvm::Twine &where) {
  if (const llvm::json::Object *member = object.getObject(name))
    return member;
  return makeError(where + ": expected an object '" + name + "'");
}

inline llvm::Expected<const llvm::json::Array *>
arrayIn(const llvm::json::Object &object, llvm::StringRef name, const llvm::Twine &where) {
  if (const llvm::json::Array *member = object.getArray(name))
    return member;
  return makeError(where + ": expected an array '" + name + "'");
}

inline llvm::Expected<llvm::StringRef> textIn(const llvm::json::Object &object,
                                              llvm::StringRef name, const llvm::Twine &where) {
  if (std::optional<llvm::StringRef> member = object.getString(name))
    return *member;
  return makeError(where + ": expected a string '" + name + "'");
}

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_JSONFIELDS_H
