// A block in a module of its own, of which a search for a counterexample asks what patches reach.
#ifndef CTXC_LIB_EVIDENCE_SUBJECT_H
#define CTXC_LIB_EVIDENCE_SUBJECT_H

#include "BlockRun.h"
#include "RankBound.h"
#include "ReachableSet.h"
#include "ctxc/Evidence/Witness.h"

namespace ctxc {

class Subject {
public:
  Subject(xf::BlockOp block, SiteScope scope)
      : block(block), graph(block), zeros(block), sites(graph, zeros, none, scope),
        moved(graph, sites), spans(findOutputSpans(graph, moved)) {
    needReference(block);
  }

  /// Both runs of a sample. Errors: those of the reference. None where float64 does not hold what
  /// the block computes, so that nothing follows from the runs.
  llvm::Expected<std::optional<BothRuns>> resolvedRuns(const Sample &sample,
                                                       Weights &weights) const {
    bool isResolved = true;
    auto facts = [&](mlir::Value v) -> const xf::Facts & { return zeros.facts(v); };
    auto runs = runBoth(block, sample, {weights, {}}, [&](const reference::Evaluation &evaluation) {
      isResolved = isResolved && reference::isResolved(block, facts, evaluation);
    });
    if (!runs)
      return runs.takeError();
    return isResolved ? std::optional(std::move(*runs)) : std::nullopt;
  }

  llvm::Expected<ConvexSum> reachable(const Sample &sample, Weights &weights) const {
    return reachableOutputs(block, moved, zeros, sample, {weights, {}});
  }

  /// How far the witness's full run is from all outputs that mix too few vectors.
  llvm::Expected<Separation> byRank(const Witness &witness, Weights &weights) const {
    return separateByRank(block, spans, witness.sample, {weights, {}}, witness.full);
  }

  xf::BlockOp block;
  Bindings none; ///< empty: what a layer freezes is written into the block
  BlockGraph graph;
  ZeroRange zeros;
  Sites sites;
  Moved moved;
  std::vector<OutputSpan> spans;
};

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_SUBJECT_H
