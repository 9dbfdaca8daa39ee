//===- Metrics.h - how far apart two vectors of logits are ----------------===//
//
// The paper's metrics (section "Results" and appendix "Experiments") between
// two vectors of logits for the next token: the baseline's, of the original model
// with its context, and another run's, such as the patched model's without it.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_METRICS_H
#define CTXC_NUMERICS_METRICS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace ctxc {

/// One token's metrics. P and Q are the softmax of the baseline's logits p and
/// of the other run's q, in float64; V is the size of the vocabulary.
struct TokenMetrics {
  int64_t baselineToken = -1; ///< argmax p; of equal logits the lowest index
  int64_t token = -1;         ///< argmax q
  bool match = false;         ///< the two are the same token
  double linf = 0;            ///< max |p − q|, of logits
  double totalVariation = 0;  ///< ½ ‖P − Q‖₁, in [0, 1]
  double hellinger = 0;       ///< ‖√P − √Q‖₂ / √2, in [0, 1]
  /// Pearson correlation of the ranks R(p) and R(q), in [−1, 1], where
  /// R(v)_i = |{j : (v_j, j) < (v_i, i)}|; 1 for V < 2.
  double rankCorrelation = 1;
  double top1Difference = 0; ///< max P − Q at argmax P, in [−1, 1]
  /// False when p or q gives no distribution: it has a NaN or +∞, or nothing but −∞. All
  /// metrics then have their worst values. A logit of −∞ excludes its token.
  bool finite = true;
};

/// The index of the largest logit, the lowest of equals; −1 where there is none.
int64_t argmax(llvm::ArrayRef<float> logits);
int64_t argmax(llvm::ArrayRef<double> logits);

/// Compares `other` with `baseline`, V logits each; takes O(V) (ranks by radix
/// sort) and allocates. Vectors of different sizes have no metrics: `finite` is false.
TokenMetrics compareLogits(llvm::ArrayRef<float> baseline, llvm::ArrayRef<float> other);
TokenMetrics compareLogits(llvm::ArrayRef<double> baseline, llvm::ArrayRef<double> other);

} // namespace ctxc

#endif // CTXC_NUMERICS_METRICS_H
