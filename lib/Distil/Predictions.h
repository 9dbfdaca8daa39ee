// What tokens should predict: the likeliest tokens of the truth and of the student, of which alone
// the divergence is taken, since the vocabulary is wider than everything else in the model.
#ifndef CTXC_LIB_DISTIL_PREDICTIONS_H
#define CTXC_LIB_DISTIL_PREDICTIONS_H

#include "ctxc/Gradient/Tape.h"
#include "ctxc/Runtime/Passage.h"

namespace ctxc {

/// For each of some rows, as many tokens of the vocabulary, and what the truth makes of them.
struct Predictions {
  std::vector<int32_t> tokens;      ///< a row's, one after the other
  std::vector<float> probabilities; ///< of the truth, among these tokens; below zero: none
};

/// For the rows of `student` from `front` to `end`: what the rows of `truth` from `first` on
/// predict; rows before `front` predict nothing. Errors: logits that are not finite.
llvm::Expected<Predictions> predict(Passage &truth, int64_t first, Passage &student, int64_t front,
                                    int64_t end, const ParallelFor &threads);

/// Σ w KL(truth ‖ softmax of the logits); the logits become its gradient with respect to them.
double pullBackDivergence(const Predictions &truth, llvm::ArrayRef<double> weights,
                          gradient::Rows &logits);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_PREDICTIONS_H
