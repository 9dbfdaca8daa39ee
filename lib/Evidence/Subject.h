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

  /// Both runs of a sample, and what float64 holds of both.
  llvm::Expected<std::pair<BothRuns, reference::Resolution>> runs(const Sample &sample,
                                                                  Weights &weights) const {
    reference::Resolution both;
    auto facts = [&](mlir::Value v) -> const xf::Facts & { return zeros.facts(v); };
    auto runs = runBoth(block, sample, {weights, {}}, [&](const reference::Evaluation &evaluation) {
      auto [large, small] = reference::resolutionOf(block, facts, evaluation);
      both = {both.large && large, both.small && small};
    });
    if (!runs)
      return runs.takeError();
    return std::pair(std::move(*runs), both);
  }

  /// Outputs, one after the other, with zeros in place of those that patches move.
  Eigen::VectorXd ofUnmoved(Eigen::VectorXd outputs) const {
    int64_t at = 0;
    for (mlir::Value output : graph.yield()->getOperands()) {
      const int64_t size = mlir::cast<mlir::ShapedType>(output.getType()).getNumElements();
      if (moved.moves(output))
        outputs.segment(at, size).setZero();
      at += size;
    }
    return outputs;
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
