#include "Diagnose.h"

using namespace mlir;
using namespace ctxc;

void ctxc::explainFailure(const BlockFacts &facts, Verdict &verdict) {
  verdict.kind = VerdictKind::Undecided;
  for (Value output : facts.graph.yield()->getOperands())
    for (const ChainBreak &b :
         findOutputChains(facts.graph, facts.sites, facts.zeros, output).breaks)
      verdict.causes.push_back({b.op, b.reason});
}
