//===- StrictJson.h - a pull reader for untrusted JSON --------------------===//
//
// For text from a file that may be hostile: depth is limited, an object with
// the same key twice (even when spelled with different escapes) is an error,
// and numbers must be integers. Use it directly if the structure is known and may be large; use
// parseStrictJson to get a json::Value (llvm::json alone neither limits depth nor notices
// duplicate keys), or JsonTree if it is large and all of it is wanted.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_STRICTJSON_H
#define CTXC_CHECKPOINT_STRICTJSON_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ctxc {

/// Reads one JSON text from front to back. Every message begins with `name`. Each
/// function reads one value at the current position; after an error the reader
/// must not be used again.
class StrictJson {
public:
  static constexpr unsigned maxDepth = 64;

  /// `text` must be UTF-8 and outlive the reader. With `pythonWords`, the words Infinity, -Infinity
  /// and NaN are values, as Python writes them, and are added there.
  StrictJson(llvm::StringRef text, llvm::StringRef name,
             std::vector<llvm::StringRef> *pythonWords = nullptr)
      : text(text), name(name), pythonWords(pythonWords) {}

  /// An object: `member` is called with each decoded key and must read exactly
  /// its value.
  llvm::Error object(llvm::function_ref<llvm::Error(llvm::StringRef key)> member);

  /// An array: `element` is called at each element and must read exactly that element.
  llvm::Error array(llvm::function_ref<llvm::Error()> element);

  /// A string, decoded; it lives as long as the text and the reader. Lone surrogates are an error.
  llvm::Expected<llvm::StringRef> string();

  /// An integer from 0 to 2^63 - 1 written without fraction, exponent or sign.
  llvm::Expected<int64_t> nonNegativeInteger();

  /// Checks any value and skips it.
  llvm::Error skip();

  /// Checks any value and returns its text.
  llvm::Expected<llvm::StringRef> raw();

  /// The character that the next value begins with; '\0' at the end of the text.
  char next();

  /// Checks that only white space remains.
  llvm::Error end();

private:
  llvm::Error fail(const llvm::Twine &message) const;
  llvm::Error expect(char c);
  llvm::Error enter();
  llvm::Expected<llvm::StringRef> number();
  llvm::Error escape(std::string &out);
  llvm::Expected<unsigned> hexUnit();
  void skipSpace();
  bool at(char c) const { return pos < text.size() && text[pos] == c; }

  llvm::StringRef text, name;
  std::vector<llvm::StringRef> *pythonWords;
  size_t pos = 0;
  unsigned depth = 0;
  llvm::BumpPtrAllocator decoded; ///< strings that are written with escapes
};

/// An error where `text` is no UTF-8, which begins with `name`.
llvm::Error checkUtf8(llvm::StringRef text, const llvm::Twine &name);

/// `text` as a value, with all checks above. The message begins with `name`.
llvm::Expected<llvm::json::Value> parseStrictJson(llvm::StringRef text, llvm::StringRef name);

/// The same for a file that Python wrote: a bare Infinity, -Infinity or NaN is an object such as
/// {"__float__": "Infinity"}, as transformers 5 writes these numbers.
llvm::Expected<llvm::json::Value> parsePythonJson(llvm::StringRef text, llvm::StringRef name);

/// `text` in single quotes, control characters escaped, cut after 120 bytes:
/// how messages show a string that came from a file.
std::string quoted(llvm::StringRef text);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_STRICTJSON_H
