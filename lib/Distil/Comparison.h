// Three models on the same predictions: the truth, another one, and adapted ones.
#ifndef CTXC_LIB_DISTIL_COMPARISON_H
#define CTXC_LIB_DISTIL_COMPARISON_H

#include "TextReader.h"

namespace ctxc {

/// What is known of one prediction by three models: the full one (the truth), the plain one and the
/// adapted one.
struct Scores {
  Prediction prediction;
  int64_t likeliestFull = 0, likeliestAdapted = 0;
  double klPlain = 0, klAdapted = 0;
  bool agreesPlain = false, agreesAdapted = false;
  double lossFull = 0, lossPlain = 0, lossAdapted = 0;
  /// Whether the likeliest token is the text's own.
  bool rightFull = false, rightPlain = false, rightAdapted = false;
};

/// A full and a plain model that have read texts, with which adapted models are compared.
class Comparison {
public:
  /// With `keeps`, the full model's logits and what the plain model says are computed with the
  /// first adapted model, and kept for the next ones: as much memory as there are predictions and
  /// tokens in the vocabulary.
  static llvm::Expected<Comparison> read(const SplitModel &model, const Front &full,
                                         const Front &plain, llvm::ArrayRef<TextSequence> texts,
                                         bool keeps);

  /// The scores of all predictions. Errors: logits that are not finite.
  llvm::Expected<std::vector<Scores>> with(TextReader &adapted, const ProgressCall &compared);

private:
  /// Some predictions together, since their logits are as wide as the vocabulary.
  struct Part {
    std::vector<float> full;    ///< logits
    std::vector<Scores> scores; ///< without the adapted model's
  };
  Comparison(TextReader full, TextReader plain, std::vector<Prediction> predictions, bool keeps)
      : full(std::move(full)), plain(std::move(plain)), predictions(std::move(predictions)),
        keeps(keeps) {}
  llvm::Expected<Part> compare(llvm::ArrayRef<Prediction> some);
  llvm::Error add(TextReader &adapted, llvm::ArrayRef<float> truth,
                  llvm::MutableArrayRef<Scores> scores) const;

  TextReader full, plain;
  std::vector<Prediction> predictions;
  bool keeps;
  std::vector<Part> kept;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_COMPARISON_H
