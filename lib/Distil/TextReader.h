// A model that reads texts, and what it says of their tokens.
#ifndef CTXC_LIB_DISTIL_TEXTREADER_H
#define CTXC_LIB_DISTIL_TEXTREADER_H

#include "Sequences.h"
#include "ctxc/Numerics/Softmax.h"
#include "ctxc/Support/Error.h"
#include <cmath>

namespace ctxc {

/// A model that has read all texts up to the head, each after `front`.
struct TextReader {
  static llvm::Expected<TextReader> read(const SplitModel &model, Weights &weights,
                                         const Front &front, llvm::ArrayRef<TextSequence> texts) {
    std::optional<size_t> head = model.split.program.head();
    if (!head)
      return makeError("the model has no head that gives each token's logits by itself");
    std::vector<PassageSequence> sequences;
    size_t first = addAfter(sequences, front, texts);
    auto passage = Passage::start(model.steps, weights, std::move(sequences));
    if (!passage)
      return passage.takeError();
    if (llvm::Error error = passage->runUpTo(*head))
      return std::move(error);
    return TextReader{model.steps.parallelFor(), std::move(*passage), first};
  }
  int64_t firstRow(size_t text) const { return passage.firstRow(first + text); }

  const ParallelFor &parallelFor;
  Passage passage;
  size_t first;
};

/// One prediction: the row that makes it, from a text's first on, and what comes next.
struct Prediction {
  size_t text;
  int64_t row, next;
};

/// The answers' tokens; of a text that is all answer, its first has no row that predicts it.
inline std::vector<Prediction> predictionsOf(llvm::ArrayRef<TextSequence> texts) {
  std::vector<Prediction> all;
  for (auto [i, text] : llvm::enumerate(texts))
    for (int64_t at = std::max<int64_t>(text.prompt, 1); at < int64_t(text.tokens.size()); ++at)
      all.push_back({i, at - 1, text.tokens[at]});
  return all;
}

/// Logits as logarithms of probabilities.
struct Distribution {
  explicit Distribution(llvm::ArrayRef<float> logits) : logits(logits), weights(logits.size()) {
    largest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    sum = exponentials(logits.data(), logits.size(), logits[largest], weights.data());
    normaliser = logits[largest] + std::log(sum);
  }
  double operator[](int64_t token) const { return logits[token] - normaliser; }
  bool isFinite() const { return std::isfinite(normaliser); }

  llvm::ArrayRef<float> logits;
  std::vector<double> weights; ///< the probabilities, times `sum`
  int64_t largest;
  double sum, normaliser;
};

/// KL(p ‖ q), never below zero.
inline double divergence(const Distribution &p, const Distribution &q) {
  double difference =
      sumOfDifferences(p.weights.data(), p.logits.data(), q.logits.data(), p.logits.size()) / p.sum;
  return std::max(difference - (p.normaliser - q.normaliser), 0.0);
}

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_TEXTREADER_H
