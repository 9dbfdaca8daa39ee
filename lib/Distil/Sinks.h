// Which rows of both runs are fitted to each other, and on which of them attention rests.
#ifndef CTXC_LIB_DISTIL_SINKS_H
#define CTXC_LIB_DISTIL_SINKS_H

#include "Sequences.h"

namespace ctxc {

/// Sequences of both runs whose rows are fitted to each other.
struct FittedSequences {
  size_t taught, learned, count; ///< the first of either run, and how many there are
  double weight;                 ///< of all their rows together
  int64_t position;              ///< they stand behind so many tokens
  size_t plain; ///< from this one on the full run has them, or their first tokens, without the
                ///< context
};

/// The rows of a fit. Where nothing, or little, stands in front of the texts, their first tokens
/// are attention's sinks in the model without the context: states many times as long as all others,
/// on which attention rests where it has nothing to read. Behind the context the same tokens are
/// ordinary. So such a row keeps the value that it has without the context.
class FittedRows {
public:
  /// How many of a run's first tokens may be sinks.
  static constexpr int64_t mostSinks = 4;

  /// The first tokens of `texts`, as far as they may be sinks behind `front`.
  static std::vector<TextSequence> firstTokens(const Front &front,
                                               llvm::ArrayRef<TextSequence> texts);

  void add(const Passage &teacher, const Passage &student, const FittedSequences &some);
  /// Finds the sinks of a layer: rows whose values without the context are longer than three
  /// medians of those with it at one of `goals`, and the first of all.
  void findSinks(const Passage &teacher, llvm::ArrayRef<mlir::Value> goals);

  size_t size() const { return learned.size(); }
  std::vector<int64_t> taught, learned; ///< rows of either run; of sinks, as findSinks left them
  std::vector<double> weights;
  std::vector<int64_t> sinks; ///< by their numbers among these, ascending

private:
  struct First {
    int64_t row, with, without; ///< its number here; the full run's rows with the context, without
    bool isSink;                ///< in every layer: none is before it, and others follow it
  };
  std::vector<First> first;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_SINKS_H
