//===- Tokenizer.h - text to token ids and back ---------------------------===//
//
// The tokenizer of a checkpoint directory: tokenizer.json if there is one (transformers reads it),
// otherwise the sentencepiece model tokenizer.model, each with what tokenizer_config.json,
// special_tokens_map.json and added_tokens.json say; or the tokenizer of a GGUF file.
//
// Text is UTF-8; invalid bytes are read as U+FFFD, one for each maximal
// invalid part, as by Python's bytes.decode("utf-8", "replace").
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOKENIZER_TOKENIZER_H
#define CTXC_TOKENIZER_TOKENIZER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ctxc {

class Tokenizer {
public:
  /// Reads DIRECTORY/tokenizer.json, else DIRECTORY/tokenizer.model, or one of these two files, or
  /// a GGUF file. Errors: there is no tokenizer, or it is malformed or has a part that
  /// is not supported; the message says where in the file.
  static llvm::Expected<std::unique_ptr<Tokenizer>> open(llvm::StringRef path);
  virtual ~Tokenizer() = default;

  /// The ids of `text`. With `addSpecial`, also the tokens that the tokenizer
  /// puts around a text: those of tokenizer.json's post-processor, such as a
  /// begin-of-sequence token; for tokenizer.model, the begin-of-sequence id of
  /// config.json, or else its own (an error if there is neither), or what tokenizer_config.json
  /// says.
  ///
  /// Added tokens such as "<|im_end|>", of a tokenizer.json, a GGUF file, or the files beside a
  /// tokenizer, are recognised inside `text`; control pieces of a tokenizer.model without such
  /// files are not. A tokenizer.json's truncation and padding are ignored, as in transformers.
  /// Error: a regular expression exceeded its limit on steps.
  virtual llvm::Expected<std::vector<int64_t>> encode(llvm::StringRef text,
                                                      bool addSpecial) const = 0;

  /// The ids of a text that a chat template made (ChatTemplate): no tokens are put around it, and
  /// special tokens that are spelled out are recognised everywhere, also in what a user wrote, as
  /// in transformers. If a tokenizer.model puts a space in front of a text, it puts one in front of
  /// each part between special tokens.
  virtual llvm::Expected<std::vector<int64_t>> encodeChat(llvm::StringRef text) const {
    return encode(text, /*addSpecial=*/false);
  }

  /// The text of `ids`, always UTF-8: invalid bytes become U+FFFD.
  /// Special tokens have no text. An id out of range is an error.
  virtual llvm::Expected<std::string> decode(llvm::ArrayRef<int64_t> ids) const = 0;

  /// One token as the vocabulary spells it ("▁the", "<0x0A>", "Ġthe"); an id that the vocabulary
  /// lacks is "<id N>".
  virtual std::string piece(int64_t id) const = 0;

  /// What a token adds to a text behind other text (" the", "\n"): maybe bytes that are only a part
  /// of a character. A special token, which adds none, is as it is spelled. TokenName.h shows it.
  virtual std::string bytes(int64_t id) const = 0;

  /// All ids are below this. In a tokenizer.json, some ids may have no token.
  virtual int64_t size() const = 0;

  /// Whether encode with `addSpecial` puts anything around a text.
  virtual bool addsSpecial() const = 0;

  /// Frees memory that encode and decode need; their next call builds it again.
  virtual void releaseMemory() {}

  /// What whoever uses the tokenizer should be told, once; empty where there is nothing to tell.
  std::string warning;
  /// The tokens that end a text, ascending, of a GGUF file, whose vocabulary says so; other files'
  /// are in GenerationConfig.
  std::vector<int64_t> ends;

protected:
  Tokenizer() = default;
};

/// Opens a tokenizer of one kind by the path of its file. `bos` is config.json's bos_token_id.
llvm::Expected<std::unique_ptr<Tokenizer>> openSentencePiece(llvm::StringRef path,
                                                             std::optional<int64_t> bos);
llvm::Expected<std::unique_ptr<Tokenizer>> openTokenizerJson(llvm::StringRef path);
llvm::Expected<std::unique_ptr<Tokenizer>> openGgufTokenizer(llvm::StringRef path);

/// The first two, given the content of such a file; messages begin with `path`.
llvm::Expected<std::unique_ptr<Tokenizer>>
parseSentencePiece(llvm::StringRef bytes, llvm::StringRef path, std::optional<int64_t> bos);
llvm::Expected<std::unique_ptr<Tokenizer>> parseTokenizerJson(llvm::StringRef text,
                                                              llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_TOKENIZER_TOKENIZER_H
