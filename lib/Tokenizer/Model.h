// The models of a tokenizer.json: how one piece of text becomes tokens.
#ifndef CTXC_LIB_TOKENIZER_MODEL_H
#define CTXC_LIB_TOKENIZER_MODEL_H

#include "Field.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <memory>

namespace ctxc::text {

/// Tokens and their ids, each the other's inverse.
class Vocabulary {
public:
  /// Ids are below this: a table of all of them must fit into memory.
  static constexpr int64_t maxIds = 1 << 24;

  /// Adds a token. Error: the id is out of range, or another entry has the id or the token.
  llvm::Error add(llvm::StringRef token, int64_t id) { return add(ids, token, id); }
  /// The same for a token that the model must not find.
  llvm::Error addBesideModel(llvm::StringRef token, int64_t id);
  std::optional<int32_t> find(llvm::StringRef token) const;
  /// The same, also of what the model must not find.
  std::optional<int32_t> idOf(llvm::StringRef token) const;
  int64_t modelSize() const { return ids.size(); } // tokens that the model may find
  /// Null where there is none.
  const std::string *token(int64_t id) const;
  int64_t size() const { return tokens.size(); } // one more than the largest id

private:
  llvm::Error add(llvm::StringMap<int32_t> &to, llvm::StringRef token, int64_t id);
  llvm::StringMap<int32_t> ids, idsBesideModel;
  std::vector<std::optional<std::string>> tokens;
};

/// The member "model" as text; its vocabulary and merges are too large for a json::Value.
struct ModelText {
  std::string place; // "FILE: model"
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<double> scores;  // of a vocabulary that is a list of tokens, each with its score
  llvm::json::Object settings; // the other members

  static llvm::Expected<ModelText> read(StrictJson &reader, llvm::StringRef file);
};

class Model {
public:
  virtual ~Model() = default;
  /// Appends the ids of `piece`, which is not empty.
  virtual void tokenize(llvm::StringRef piece, std::vector<int64_t> &ids) const = 0;
  Vocabulary vocabulary;
};

llvm::Expected<std::unique_ptr<Model>> makeModel(ModelText text);
llvm::Expected<std::unique_ptr<Model>> makeBpe(ModelText text);
llvm::Expected<std::unique_ptr<Model>> makeWordPiece(ModelText text);
llvm::Expected<std::unique_ptr<Model>> makeWordLevel(ModelText text);
llvm::Expected<std::unique_ptr<Model>> makeUnigram(ModelText text);

/// The ids of "<0x00>" to "<0xFF>", -1 where there is none.
using ByteTokens = std::array<int32_t, 256>;
ByteTokens byteTokens(const Vocabulary &vocabulary);
ByteTokens noByteTokens();

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_MODEL_H
