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

/// m entries that are read like the P places.
class EntryFit {
public:
  /// Keys by the queries' axes, values, and what both give.
  struct State {
    FloatMatrix keys, values; ///< m × d, m × e
    FloatMatrix weights;      ///< the softmax's: m × R
    FloatMatrix slopes;       ///< the softcap's derivative: m × R; empty without one
    FloatMatrix error;        ///< of attention's result: e × R
    double loss = 0;          ///< the sum of its squares
  };

  /// Those whose result is next to the target; `count` is m, less than P.
  EntryFit(EntryRows rows, int64_t count, const ParallelFor &threads);

  FloatMatrix keys() const; ///< m × d
  const State &now() const { return at; }
  /// A step of each key by itself that brings what a matrix W makes of the result nearer to a goal,
  /// to first order: `pulls` are Wᵀ of what is missing, e × R, and `metrics` Wᵀ W, e × e for each
  /// head of queries; none: W is the identity.
  FloatMatrix stepOfKeys(const FloatMatrix &pulls, llvm::ArrayRef<FloatMatrix> metrics) const;
  /// With the same values, and without `loss`.
  State moved(const FloatMatrix &step) const;
  void take(State next, const Matrix &changeOfValues);

private:
  /// What keys are solved of, both m × R.
  struct KeyRows {
    FloatMatrix weights, wanted;
  };

  void findAxes();
  void findReads();
  FloatMatrix features() const;
  std::vector<int64_t> firstCentres(const FloatMatrix &features) const;
  void cluster();
  void sumClusters();
  FloatMatrix solveKeys(const KeyRows &some) const;
  FloatMatrix firstKeys() const;
  FloatMatrix weigh(FloatMatrix &scores, FloatMatrix &slopes) const;
  State solveValues(FloatMatrix keys) const;
  void refine();
  template <typename Body> void overBlocks(Body body) const;

  EntryRows rows;
  int64_t count, places, size; // m, P, R
  const ParallelFor *threads;
  FloatMatrix target, ownResult;    ///< e × R
  FloatMatrix axes;                 ///< of the queries, in columns: d × d
  FloatMatrix queries, contextKeys; ///< by these axes: d × R, P × d
  FloatMatrix squares;              ///< of `queries`
  Vector spread;                    ///< of the queries along each axis, d
  Vector full;                      ///< the logarithm of each row's whole sum
  FloatMatrix read;                 ///< how much of the softmax each place has: R × P
  Vector reads;                     ///< the same over all rows, of their sum
  std::vector<int64_t> label;       ///< of each place, the entry that stands for it
  FloatMatrix logSums;              ///< of each row, over an entry's places: m × R
  FloatMatrix means, first;         ///< of an entry's places: values m × e, keys m × d
  State at;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_ENTRYFIT_H
