// Unigram: of all ways to divide a piece into tokens, the one with the greatest sum of scores
// (Viterbi), in double precision, as the tokenizers package and llama.cpp compute it;
// sentencepiece's library does it in float, and divides otherwise where two ways have equal sums.
#include "Model.h"
#include "Unicode.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

class Unigram final : public Model {
public:
  std::vector<double> scores;
  int32_t unknown = 0;
  double unknownScore = 0;
  ByteTokens bytes;   // -1: without byte fallback, or with a byte missing
  size_t longest = 0; ///< of the vocabulary's tokens, in bytes

  void tokenize(StringRef piece, std::vector<int64_t> &ids) const override;

private:
  /// The last token of the best way to divide the text in front of a place.
  struct Best {
    double score = 0;
    size_t begin = 0;
    std::optional<int32_t> id;
  };
  std::vector<Best> bestOf(StringRef piece) const;
};

} // namespace

std::vector<Unigram::Best> Unigram::bestOf(StringRef piece) const {
  std::vector<Best> best(piece.size() + 1);
  forEachCodePoint(piece, [&](char32_t, size_t at, size_t size) {
    double before = best[at].score;
    auto offer = [&](size_t end, int32_t id, double score) {
      if (!best[end].id || before + score > best[end].score)
        best[end] = {before + score, at, id};
    };
    bool hasCharacter = false;
    size_t most = std::min(piece.size(), at + longest);
    for (size_t end = at + size; end <= most; ++end) {
      if (end < piece.size() && (piece[end] & 0xc0) == 0x80)
        continue;
      if (std::optional<int32_t> id = vocabulary.find(piece.slice(at, end))) {
        hasCharacter |= end == at + size;
        offer(end, *id, scores[*id]);
      }
    }
    if (!hasCharacter)
      offer(at + size, unknown, unknownScore);
  });
  return best;
}

void Unigram::tokenize(StringRef piece, std::vector<int64_t> &ids) const {
  std::vector<Best> best = bestOf(piece);
  size_t from = ids.size();
  bool isUnknownBehind = false;
  for (size_t end = piece.size(); end > 0; end = best[end].begin) { // backwards
    bool isUnknown = *best[end].id == unknown;
    StringRef text = piece.slice(best[end].begin, end);
    if (isUnknown && all_of(text.bytes(), [&](uint8_t b) { return bytes[b] >= 0; })) {
      for (uint8_t b : reverse(text.bytes()))
        ids.push_back(bytes[b]);
      isUnknown = false;
    } else if (!isUnknown || !isUnknownBehind) { // a run of them is one
      ids.push_back(*best[end].id);
    }
    isUnknownBehind = isUnknown;
  }
  std::reverse(ids.begin() + from, ids.end());
}

Expected<std::unique_ptr<Model>> text::makeUnigram(ModelText text) {
  json::Value settings = std::move(text.settings);
  Field field(&settings, text.place);
  if (Error error = field.onlyKeys({"type", "unk_id", "byte_fallback"}))
    return std::move(error);
  Expected<int64_t> unknown = field["unk_id"].count();
  Expected<bool> fallback = field["byte_fallback"].boolean(false);
  if (!unknown || !fallback)
    return joinErrors(unknown.takeError(), fallback.takeError());
  if (*unknown >= int64_t(text.scores.size()))
    return field["unk_id"].fail(Twine(*unknown) + " is no token; there are " +
                                Twine(text.scores.size()));
  auto model = std::make_unique<Unigram>();
  model->vocabulary = std::move(text.vocabulary);
  model->scores = std::move(text.scores);
  model->unknown = int32_t(*unknown);
  constexpr double penalty = 10; // sentencepiece's kUnkPenalty
  model->unknownScore = *std::min_element(model->scores.begin(), model->scores.end()) - penalty;
  for (int64_t id = 0; id < model->vocabulary.size(); ++id)
    model->longest = std::max(model->longest, model->vocabulary.token(id)->size());
  model->bytes = *fallback ? byteTokens(model->vocabulary) : noByteTokens();
  return model;
}
