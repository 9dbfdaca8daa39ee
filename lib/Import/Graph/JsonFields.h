// Typed members of untrusted JSON objects: what is missing or of another kind is an error that
// names it.
#ifndef CTXC_IMPORT_JSONFIELDS_H
#define CTXC_IMPORT_JSONFIELDS_H

#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

namespace ctxc::pt2 {

/// A text as a JSON object; messages begin with `where`.
inline llvm::Expected<JsonTree> readObject(std::string text, const std::string &where) {
  llvm::Expected<JsonTree> tree = JsonTree::parse(std::move(text), where);
  if (tree && !tree->root().isObject())
    return makeError(where + ": expected an object");
  return tree;
}

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

/// Fails where `object` is none, or has a member beside `known`, which could change what it means.
inline llvm::Error expectMembers(JsonView object, llvm::ArrayRef<llvm::StringRef> known,
                                 const llvm::Twine &where) {
  if (!object.isObject())
    return makeError(where + ": expected an object");
  for (JsonView member : object)
    if (!llvm::is_contained(known, member.key()))
      return makeError(where + ": found " + quoted(member.key()) + ", which is not known here; " +
                       "expected " + llvm::join(known, ", ") + " alone");
  return llvm::Error::success();
}

inline llvm::Expected<llvm::StringRef> textIn(JsonView object, llvm::StringRef name,
                                              const llvm::Twine &where) {
  if (std::optional<llvm::StringRef> member = object[name].text())
    return *member;
  return makeError(where + ": expected a string '" + name + "'");
}

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_JSONFIELDS_H
