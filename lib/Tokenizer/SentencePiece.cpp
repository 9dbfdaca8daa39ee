// tokenizer.model, read and run by the sentencepiece library.
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include <sentencepiece_processor.h>

using namespace llvm;
using namespace ctxc;

namespace {

class SentencePiece final : public Tokenizer {
public:
  sentencepiece::SentencePieceProcessor processor;
  std::optional<int64_t> bos;

  Expected<std::vector<int64_t>> encode(StringRef text, bool addSpecial) const override;
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override;
  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size())
      return "<id " + std::to_string(id) + ">";
    return processor.IdToPiece(int(id));
  }
  int64_t size() const override { return processor.GetPieceSize(); }
  bool addsSpecial() const override { return bos.has_value(); }
};

} // namespace

Expected<std::unique_ptr<Tokenizer>> ctxc::openSentencePiece(StringRef path,
                                                             std::optional<int64_t> bos) {
  Expected<std::string> bytes = readSmallFile(path, 256 << 20);
  if (!bytes)
    return bytes.takeError();
  return parseSentencePiece(*bytes, path, bos);
}

Expected<std::unique_ptr<Tokenizer>> ctxc::parseSentencePiece(StringRef bytes, StringRef path,
                                                              std::optional<int64_t> bos) {
  auto tokenizer = std::make_unique<SentencePiece>();
  sentencepiece::util::Status status =
      tokenizer->processor.LoadFromSerializedProto(absl::string_view(bytes.data(), bytes.size()));
  if (!status.ok() || tokenizer->size() == 0)
    return makeError(path + ": is not a sentencepiece model" +
                     (status.ok() ? "" : Twine(": ") + status.error_message()));
  if (!bos || *bos < 0 || *bos >= tokenizer->size())
    bos = tokenizer->processor.bos_id();
  if (*bos >= 0)
    tokenizer->bos = bos;
  return tokenizer;
}

Expected<std::vector<int64_t>> SentencePiece::encode(StringRef text, bool addSpecial) const {
  std::vector<int> pieces;
  sentencepiece::util::Status status =
      processor.Encode(absl::string_view(text.data(), text.size()), &pieces);
  if (!status.ok())
    return makeError(Twine("the text cannot be tokenized: ") + status.error_message());
  std::vector<int64_t> ids;
  if (addSpecial && !bos)
    return makeError("tokenizer.model has no begin-of-sequence piece, and config.json no "
                     "bos_token_id: give token ids with --tokens");
  if (addSpecial)
    ids.push_back(*bos);
  ids.insert(ids.end(), pieces.begin(), pieces.end());
  return ids;
}

Expected<std::string> SentencePiece::decode(ArrayRef<int64_t> ids) const {
  for (int64_t id : ids)
    if (id < 0 || id >= size())
      return makeError("token id " + Twine(id) + " is out of range; the tokenizer has " +
                       Twine(size()) + " pieces");
  std::string text;
  sentencepiece::util::Status status =
      processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok())
    return makeError(Twine("the tokens cannot be decoded: ") + status.error_message());
  return text;
}
