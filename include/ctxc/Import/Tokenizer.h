//===- Tokenizer.h - text to token ids and back ---------------------------===//
#ifndef CTXC_IMPORT_TOKENIZER_H
#define CTXC_IMPORT_TOKENIZER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <vector>

namespace ctxc {

/// The sentencepiece model of a checkpoint directory.
class Tokenizer {
public:
  /// Reads DIRECTORY/tokenizer.model. Errors: there is none (a tokenizer.json
  /// alone is not read; the message says to use --tokens), or it is malformed.
  static llvm::Expected<std::unique_ptr<Tokenizer>> open(llvm::StringRef directory);
  ~Tokenizer();

  /// The ids of `text`, after the begin-of-sequence id where `addBos`. Control
  /// pieces such as "<bos>" are not recognised inside `text`.
  llvm::Expected<std::vector<int64_t>> encode(llvm::StringRef text, bool addBos) const;

  /// The text of `ids`; control pieces give none. An id out of range is an error.
  llvm::Expected<std::string> decode(llvm::ArrayRef<int64_t> ids) const;

  /// One token as the vocabulary spells it ("▁the", "<0x0A>"), for tables; an
  /// id that the vocabulary lacks is shown as "<id N>".
  std::string piece(int64_t id) const;

  int64_t size() const;

  /// config.json's bos_token_id, else the tokenizer's own; none where neither has one.
  std::optional<int64_t> bosId() const;

private:
  Tokenizer();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ctxc

#endif // CTXC_IMPORT_TOKENIZER_H
