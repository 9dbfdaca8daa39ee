// tokenizer.model, read and run by the sentencepiece library. Its processor takes ten times the
// file's size, so that it exists only while text is turned into tokens; to turn tokens into text, a
// processor with the tokens' own pieces is enough.
#include "SentencePieceBeside.h"
#include "Unicode.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/LEB128.h"
#include <map>
#include <sentencepiece_processor.h>

using namespace llvm;
using namespace ctxc;

namespace {

using Processor = sentencepiece::SentencePieceProcessor;

class SentencePiece final : public Tokenizer {
public:
  /// Without a `file` the processor is kept. `changes` follow the model whenever it is read.
  SentencePiece(std::unique_ptr<Processor> processor, std::optional<int64_t> configuredBos,
                StringRef file, StringRef changes = "");

  Expected<std::vector<int64_t>> encode(StringRef text, bool addSpecial) const override;
  Expected<std::vector<int64_t>> encodeChat(StringRef text) const override;
  Expected<std::string> decode(ArrayRef<int64_t> ids) const override;
  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size())
      return "<id " + std::to_string(id) + ">";
    return spelled.substr(begins[id], begins[id + 1] - begins[id]);
  }
  std::string bytes(int64_t id) const override { return text::bytesOfPiece(piece(id)); }
  int64_t size() const override { return begins.size() - 1; }
  bool addsSpecial() const override { return bos.has_value(); }
  void releaseMemory() override {
    if (!file.empty())
      loaded.reset();
  }

private:
  Expected<const Processor *> processor() const;
  Expected<std::string> decodeByItsPieces(ArrayRef<int64_t> ids) const;

  std::string file, changes; ///< the file from which a processor can be loaded again
  mutable std::unique_ptr<Processor> loaded;
  std::vector<int64_t> needed;  ///< pieces that any processor must have
  std::string spelled;          ///< all pieces, one after the other
  std::vector<uint32_t> begins; ///< where each begins, and where the last ends
  std::optional<int64_t> bos;
};

} // namespace

static Expected<std::unique_ptr<Processor>> load(StringRef bytes, StringRef path) {
  auto fail = [&](const Twine &why) {
    return makeError(path + ": is not a sentencepiece model" + why);
  };
  auto processor = std::make_unique<Processor>();
  // The library has a status for most bad files, and lets the exceptions of what it uses through
  // for some.
  try {
    sentencepiece::util::Status status =
        processor->LoadFromSerializedProto(absl::string_view(bytes.data(), bytes.size()));
    if (!status.ok())
      return fail(Twine(": ") + status.error_message());
  } catch (const std::exception &exception) {
    return fail(Twine(": ") + exception.what());
  }
  if (processor->GetPieceSize() == 0)
    return fail("");
  return processor;
}

static Expected<std::unique_ptr<Processor>> loadFile(StringRef path, StringRef changes = "") {
  Expected<std::string> bytes = readSmallFile(path, 256 << 20);
  if (!bytes)
    return bytes.takeError();
  return load(*bytes + changes.str(), path);
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

// Of two normalizer_specs, the second one's fields hold: no normalization (precompiled_charsmap),
// no add_dummy_prefix, no remove_extra_whitespaces.
static constexpr StringLiteral textAsItIs =
    StringLiteral::withInnerNUL("\x1a\x06\x12\x00\x18\x00\x20\x00");

Expected<text::SentencePieceModel>
text::openSentencePieceModel(StringRef path, std::optional<int64_t> bos, bool isTextAsItIs) {
  StringRef changes = isTextAsItIs ? StringRef(textAsItIs) : "";
  auto processor = loadFile(path, changes);
  if (!processor)
    return processor.takeError();
  SentencePieceModel model;
  for (int id = 0; id < (*processor)->GetPieceSize(); ++id)
    if ((*processor)->IsControl(id))
      model.controls.push_back(id);
  model.unknown = (*processor)->unk_id();
  model.bos = bos.value_or((*processor)->bos_id());
  model.tokenizer = std::make_unique<SentencePiece>(std::move(*processor), bos, path, changes);
  return model;
}

SentencePiece::SentencePiece(std::unique_ptr<Processor> processor,
                             std::optional<int64_t> configuredBos, StringRef path,
                             StringRef changes)
    : file(path), changes(changes), loaded(std::move(processor)), bos(configuredBos) {
  if (!bos || *bos < 0 || *bos >= loaded->GetPieceSize())
    bos = loaded->bos_id();
  if (*bos < 0)
    bos.reset();
  for (int id = 0; id < loaded->GetPieceSize(); ++id) {
    begins.push_back(spelled.size());
    spelled += loaded->IdToPiece(id);
    if (loaded->IsUnknown(id) || loaded->IsControl(id) || loaded->IsByte(id))
      needed.push_back(id);
  }
  begins.push_back(spelled.size());
}

static Error changedError(StringRef file) {
  return makeError(file + ": was changed while it was in use");
}

Expected<const Processor *> SentencePiece::processor() const {
  if (!loaded) {
    auto again = loadFile(file, changes);
    if (!again)
      return again.takeError();
    if ((*again)->GetPieceSize() != size())
      return changedError(file);
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
                     "bos_token_id: give token ids instead of text");
  if (addSpecial)
    ids.push_back(*bos);
  ids.insert(ids.end(), pieces.begin(), pieces.end());
  return ids;
}

Expected<std::vector<int64_t>> SentencePiece::encodeChat(StringRef text) const {
  Expected<const Processor *> processor = this->processor();
  if (!processor)
    return processor.takeError();
  std::map<std::string, int64_t, std::greater<>> controls; // of two that match, the longer is first
  std::string firstBytes;
  for (int64_t id = 0; id < size(); ++id)
    if ((*processor)->IsControl(int(id)) && !piece(id).empty()) {
      controls.emplace(piece(id), id);
      firstBytes += piece(id).front();
    }
  std::vector<int64_t> ids;
  size_t begin = 0;
  auto encodePart = [&](size_t end) -> Error {
    if (begin == end)
      return Error::success();
    auto part = encode(text.slice(begin, end), /*addSpecial=*/false);
    if (part)
      append_range(ids, *part);
    return part.takeError();
  };
  for (size_t at = 0; (at = text.find_first_of(firstBytes, at)) != StringRef::npos;) {
    auto control = find_if(
        controls, [&](const auto &each) { return text.drop_front(at).starts_with(each.first); });
    if (control == controls.end()) {
      ++at;
      continue;
    }
    if (Error error = encodePart(at))
      return std::move(error);
    ids.push_back(control->second);
    begin = at += control->first.size();
  }
  if (Error error = encodePart(text.size()))
    return std::move(error);
  return ids;
}

/// A serialised sentencepiece.ModelProto with some of its pieces, whose ids ascend: unchanged
/// except for field 1, the pieces, and 4, tests of all of them. None where `bytes` are no such
/// message, or lack a piece.
static std::optional<std::string> modelOf(ArrayRef<uint8_t> bytes, ArrayRef<int64_t> pieces) {
  enum Field : uint64_t { Piece = 1, SelfTest = 4 };
  constexpr uint64_t lengthDelimited = 2; // the wire type of all of this message's fields
  std::string model;
  int64_t id = 0;
  const uint8_t *at = bytes.begin();
  while (at < bytes.end()) {
    const uint8_t *begin = at;
    auto number = [&]() -> uint64_t {
      unsigned length;
      const char *error = nullptr;
      uint64_t value = decodeULEB128(at, &length, bytes.end(), &error);
      at += length;
      return error ? ~0ull : value;
    };
    uint64_t tag = number(), size = number(), field = tag >> 3;
    if ((tag & 7) != lengthDelimited || size > uint64_t(bytes.end() - at))
      return std::nullopt;
    at += size;
    bool isIn = field != SelfTest;
    if (field == Piece && (isIn = !pieces.empty() && pieces.front() == id++))
      pieces = pieces.drop_front();
    if (isIn)
      model.append(begin, at);
  }
  return pieces.empty() ? std::optional(std::move(model)) : std::nullopt;
}

static Expected<std::string> decodeBy(const Processor &processor, const std::vector<int> &ids) {
  std::string text;
  sentencepiece::util::Status status = processor.Decode(ids, &text);
  if (!status.ok())
    return makeError(Twine("the tokens cannot be decoded: ") + status.error_message());
  return text;
}

Expected<std::string> SentencePiece::decodeByItsPieces(ArrayRef<int64_t> ids) const {
  std::vector<int64_t> pieces(needed);
  append_range(pieces, ids);
  sort(pieces);
  pieces.erase(llvm::unique(pieces), pieces.end());
  Expected<std::unique_ptr<MappedFile>> map = MappedFile::open(file);
  if (!map)
    return map.takeError();
  std::optional<std::string> model = modelOf((*map)->bytes(), pieces);
  if (!model)
    return changedError(file);
  auto processor = load(*model + changes, file);
  if (!processor)
    return processor.takeError();
  for (auto [place, id] : enumerate(pieces))
    if ((*processor)->IdToPiece(place) != piece(id))
      return changedError(file);
  std::vector<int> places;
  for (int64_t id : ids)
    places.push_back(lower_bound(pieces, id) - pieces.begin());
  return decodeBy(**processor, places);
}

Expected<std::string> SentencePiece::decode(ArrayRef<int64_t> ids) const {
  for (int64_t id : ids)
    if (id < 0 || id >= size())
      return makeError("token id " + Twine(id) + " is out of range; the tokenizer has " +
                       Twine(size()) + " pieces");
  return loaded ? decodeBy(*loaded, std::vector<int>(ids.begin(), ids.end()))
                : decodeByItsPieces(ids);
}
