//===- JsonTree.h - a large JSON text as one table ------------------------===//
//
// A json::Value allocates a map for each object, and moves arrays as they grow. A JsonTree is for
// texts of many megabytes: one pass with all checks of StrictJson, after which every value is an
// entry of one table, in the order of the text.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_JSONTREE_H
#define CTXC_CHECKPOINT_JSONTREE_H

#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/iterator.h"
#include <memory>
#include <optional>
#include <vector>

namespace ctxc {

/// A value of a tree that lives, or none. What is asked of none, or of a value of another kind, is
/// absent as well, so that a chain of questions needs one check.
class JsonView {
public:
  JsonView() = default;

  explicit operator bool() const { return entry; }
  bool isObject() const { return entry && entry->kind == '{'; }
  bool isArray() const { return entry && entry->kind == '['; }

  std::optional<llvm::StringRef> text() const;
  std::optional<bool> flag() const;
  std::optional<double> number() const;
  /// A number without a fraction, as "3" or "3.0".
  std::optional<int64_t> integer() const;

  /// The member `key` of an object.
  JsonView operator[](llvm::StringRef key) const;
  /// The key of a member.
  llvm::StringRef key() const { return entry ? entry->key : ""; }

  /// Members of an object, or elements of an array, in the order of the text.
  class iterator;
  iterator begin() const;
  iterator end() const;
  size_t size() const { return entry ? entry->size : 0; }

private:
  friend class JsonTree;
  /// A value; those in it follow it.
  struct Entry {
    llvm::StringRef key;
    llvm::StringRef text; ///< a string, decoded; a number or a word as it is written
    uint32_t size = 0;    ///< members or elements
    uint32_t span = 1;    ///< entries of the value, itself included
    char kind = 0;        ///< the character that it begins with
  };
  explicit JsonView(const Entry *entry) : entry(entry) {}

  const Entry *entry = nullptr;
};

class JsonView::iterator
    : public llvm::iterator_facade_base<iterator, std::forward_iterator_tag, JsonView, ptrdiff_t,
                                        const JsonView *, JsonView> {
public:
  explicit iterator(const Entry *entry) : entry(entry) {}
  bool operator==(const iterator &other) const { return entry == other.entry; }
  JsonView operator*() const { return JsonView(entry); }
  iterator &operator++() {
    entry += entry->span;
    return *this;
  }

private:
  const Entry *entry;
};

inline JsonView::iterator JsonView::begin() const { return iterator(entry ? entry + 1 : nullptr); }
inline JsonView::iterator JsonView::end() const {
  return iterator(entry ? entry + entry->span : nullptr);
}

/// Owns the text and its values.
class JsonTree {
public:
  /// Messages begin with `name`.
  static llvm::Expected<JsonTree> parse(std::string text, llvm::StringRef name);

  JsonView root() const;

private:
  struct State;
  JsonTree() = default;

  std::shared_ptr<const State> state;
};

} // namespace ctxc

#endif // CTXC_CHECKPOINT_JSONTREE_H
