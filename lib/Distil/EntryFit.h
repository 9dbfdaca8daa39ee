// The virtual entries of one head of keys. docs/distil-method.md has the formulas.
#ifndef CTXC_LIB_DISTIL_ENTRYFIT_H
#define CTXC_LIB_DISTIL_ENTRYFIT_H

#include "Regression.h"

namespace ctxc {

/// What is read of one head of keys: R rows, one for each token of the texts and each head of
/// queries that reads these keys; P places of the context.
struct EntryRows {
  FloatMatrix queries;      ///< of the adapted run, times attention's scale: R × d
  FloatMatrix scores;       ///< of the context's keys; −∞ where one is not seen: R × P
  FloatMatrix keys, values; ///< the context's: P × d, P × e
  Vector own;               ///< the logarithm of the sum of exponentials of the other scores, R
  FloatMatrix ownResult;    ///< what attention gives without the context: R × e
  FloatMatrix target;       ///< what it gives in the full run: R × e
  /// What is added to the scores of entries, before the softcap; −∞ where one is not seen: m × R.
  /// Empty: nothing.
  FloatMatrix bias;
  float cap = 0; ///< the softcap; 0: none
};

struct EntryFit {
  FloatMatrix keys, values; ///< m × d, m × e
  FloatMatrix weights;      ///< how each row reads them: m × R
};

/// `count` entries that are read like the P places; count < P.
EntryFit fitEntries(const EntryRows &rows, int64_t count, const ParallelFor &threads);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ENTRYFIT_H
