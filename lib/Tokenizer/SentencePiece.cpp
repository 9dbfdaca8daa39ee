// tokenizer.model, read and run by the sentencepiece library. Its processor takes ten times the
// file's size, so that it is there only while text is turned into tokens or back.
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include <sentencepiece_processor.h>

using namespace llvm;
using namespace ctxc;

namespace {

using Processor = sentencepiece::SentencePieceProcessor;

class SentencePiece final : public Tokenizer {
public:
  /// Without a `file` the processor stays.
  SentencePiece(std::unique_ptr<Processor> processor, std::optional<int64_t> configuredBos,
                StringRef file);

  Expected<std::vector<int64_t>> encode(StringRef text, bool addSpecial) const override;
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override;
  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size())
      return "<id " + std::to_string(id) + ">";
    return spelled.substr(begins[id], begins[id + 1] - begins[id]);
  }
  int64_t size() const override { return begins.size() - 1; }
  bool addsSpecial() const override { return bos.has_value(); }
  void rest() override {
    if (!file.empty())
      loaded.reset();
  }

private:
  Expected<const Processor *> processor() const;

  std::string file; ///< where a processor can be loaded from again
  mutable std::unique_ptr<Processor> loaded;
  std::string spelled;          ///< all pieces, one after the other
  std::vector<uint32_t> begins; ///< where each begins, and where the last ends
  std::optional<int64_t> bos;
};

} // namespace

static Expected<std::unique_ptr<Processor>> load(StringRef bytes, StringRef path) {
  auto processor = std::make_unique<Processor>();
  sentencepiece::util::Status status =
      processor->LoadFromSerializedProto(absl::string_view(bytes.data(), bytes.size()));
  if (!status.ok() || processor->GetPieceSize() == 0)
    return makeError(path + ": is not a sentencepiece model" +
                     (status.ok() ? "" : Twine(": ") + status.error_message()));
  return processor;
}

static Expected<std::unique_ptr<Processor>> loadFile(StringRef path) {
  Expected<std::string> bytes = readSmallFile(path, 256 << 20);
  if (!bytes)
    return bytes.takeError();
  return load(*bytes, path);
}

Expected<std::unique_ptr<Tokenizer>> ctxc::openSentencePiece(StringRef path,
                                                             std::optional<int64_t> bos) {
  auto processor = loadFile(path);
  if (!processor)
    return processor.takeError();
  return std::make_unique<SentencePiece>(std::move(*processor), bos, path);
}

Expected<std::unique_ptr<Tokenizer>> ctxc::parseSentencePiece(StringRef bytes, StringRef path,
                                                              std::optional<int64_t> bos) {
  auto processor = load(bytes, path);
  if (!processor)
    return processor.takeError();
  return std::make_unique<SentencePiece>(std::move(*processor), bos, "");
}

SentencePiece::SentencePiece(std::unique_ptr<Processor> processor,
                             std::optional<int64_t> configuredBos, StringRef path)
    : file(path), loaded(std::move(processor)), bos(configuredBos) {
  if (!bos || *bos < 0 || *bos >= loaded->GetPieceSize())
    bos = loaded->bos_id();
  if (*bos < 0)
    bos.reset();
  for (int id = 0; id < loaded->GetPieceSize(); ++id) {
    begins.push_back(spelled.size());
    spelled += loaded->IdToPiece(id);
  }
  begins.push_back(spelled.size());
}

Expected<const Processor *> SentencePiece::processor() const {
  if (!loaded) {
    auto again = loadFile(file);
    if (!again)
      return again.takeError();
    if ((*again)->GetPieceSize() != size())
      return makeError(file + ": was changed while it was in use");
    loaded = std::move(*again);
  }
  return loaded.get();
}

Expected<std::vector<int64_t>> SentencePiece::encode(StringRef text, bool addSpecial) const {
  Expected<const Processor *> processor = this->processor();
  if (!processor)
    return processor.takeError();
  std::vector<int> pieces;
  sentencepiece::util::Status status =
      (*processor)->Encode(absl::string_view(text.data(), text.size()), &pieces);
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
  Expected<const Processor *> processor = this->processor();
  if (!processor)
    return processor.takeError();
  std::string text;
  sentencepiece::util::Status status =
      (*processor)->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok())
    return makeError(Twine("the tokens cannot be decoded: ") + status.error_message());
  return text;
}
