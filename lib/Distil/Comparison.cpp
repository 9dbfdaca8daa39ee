#include "Comparison.h"

using namespace ctxc;

llvm::Expected<Comparison> Comparison::read(const SplitModel &model, const Front &full,
                                            const Front &plain, llvm::ArrayRef<TextSequence> texts,
                                            bool keeps) {
  auto first = TextReader::read(model, model.weights, full, texts);
  if (!first)
    return first.takeError();
  auto second = TextReader::read(model, model.weights, plain, texts);
  if (!second)
    return second.takeError();
  return Comparison(std::move(*first), std::move(*second), predictionsOf(texts), keeps);
}

static llvm::Error notFinite() {
  return makeError("the logits of a token of the text are not finite");
}

/// What the adapted model's distribution says; false where it is not finite.
static bool compareAdapted(Scores &scores, const Distribution &full, const Distribution &adapted) {
  if (!adapted.isFinite())
    return false;
  scores.likeliestAdapted = adapted.largest;
  scores.klAdapted = divergence(full, adapted);
  scores.agreesAdapted = full.largest == adapted.largest;
  scores.lossAdapted = -adapted[scores.prediction.next];
  scores.rightAdapted = adapted.largest == scores.prediction.next;
  return true;
}

static bool comparePlain(Scores &scores, const Distribution &full, const Distribution &plain) {
  if (!full.isFinite() || !plain.isFinite())
    return false;
  const int64_t next = scores.prediction.next;
  scores.likeliestFull = full.largest;
  scores.klPlain = divergence(full, plain);
  scores.agreesPlain = full.largest == plain.largest;
  scores.lossFull = -full[next];
  scores.lossPlain = -plain[next];
  scores.rightFull = full.largest == next;
  scores.rightPlain = plain.largest == next;
  return true;
}

/// Compares the full model's logits with `other` in each of `scores`; an error where some are not
/// finite.
template <typename Compare>
static llvm::Error compareEach(const ParallelFor &parallelFor, llvm::MutableArrayRef<Scores> scores,
                               llvm::ArrayRef<float> full, llvm::ArrayRef<float> other,
                               Compare compare) {
  const size_t width = full.size() / scores.size();
  std::vector<char> isFinite(scores.size());
  parallelFor(scores.size(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      isFinite[i] = compare(scores[i], Distribution(full.slice(i * width, width)),
                            Distribution(other.slice(i * width, width)));
  });
  return llvm::is_contained(isFinite, 0) ? notFinite() : llvm::Error::success();
}

static llvm::Expected<std::vector<float>> logitsOf(TextReader &reader,
                                                   llvm::ArrayRef<Scores> scores) {
  auto rows = llvm::map_to_vector(scores, [&](const Scores &s) {
    return reader.firstRow(s.prediction.text) + s.prediction.row;
  });
  return reader.passage.logits(rows);
}

llvm::Expected<Comparison::Part> Comparison::compare(llvm::ArrayRef<Prediction> some) {
  Part part;
  for (const Prediction &prediction : some)
    part.scores.push_back({prediction});
  auto truth = logitsOf(full, part.scores), other = logitsOf(plain, part.scores);
  if (!truth || !other)
    return llvm::joinErrors(truth.takeError(), other.takeError());
  part.full = std::move(*truth);
  if (llvm::Error error =
          compareEach(full.parallelFor, part.scores, part.full, *other, comparePlain))
    return std::move(error);
  return std::move(part);
}

llvm::Error Comparison::add(TextReader &adapted, llvm::ArrayRef<float> truth,
                            llvm::MutableArrayRef<Scores> scores) const {
  auto logits = logitsOf(adapted, scores);
  if (!logits)
    return logits.takeError();
  return compareEach(full.parallelFor, scores, truth, *logits, compareAdapted);
}

llvm::Expected<std::vector<Scores>> Comparison::with(TextReader &adapted,
                                                     const ProgressCall &compared) {
  constexpr size_t together = 64;
  std::vector<Scores> all;
  tell(compared, 0, predictions.size());
  for (size_t number = 0; all.size() < predictions.size(); ++number) {
    Part made;
    if (number >= kept.size()) {
      llvm::ArrayRef<Prediction> left = llvm::ArrayRef(predictions).drop_front(all.size());
      if (llvm::Error error =
              compare(left.take_front(std::min(together, left.size()))).moveInto(made))
        return std::move(error);
      if (keeps)
        kept.push_back(std::move(made));
    }
    const Part &part = keeps ? kept[number] : made;
    const size_t from = all.size();
    llvm::append_range(all, part.scores);
    if (llvm::Error error =
            add(adapted, part.full, llvm::MutableArrayRef<Scores>(all).drop_front(from)))
      return std::move(error);
    tell(compared, all.size(), predictions.size());
  }
  return all;
}
