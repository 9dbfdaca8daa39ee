// A counterexample that was found before, evaluated again.
#include "Subject.h"
#include "TensorWeights.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

bool Replay::confirms(const Witness &witness) const {
  // What patches leave may be far larger than what it is compared with.
  double slack = 1e-9 * (1 + witness.full.norm() + std::abs(witness.leastError));
  return difference <= 1e-12 * (1 + witness.full.norm()) && leastError > 0 &&
         std::abs(leastError - witness.leastError) <= slack &&
         (!search || search->error >= witness.leastError - slack);
}

/// The reader accepts any values; here they are checked.
static llvm::Error checkShapes(const Witness &witness) {
  const Sample &sample = witness.sample;
  auto rowsAre = [](const Activations &all, int64_t rows) {
    return llvm::all_of(all, [&](const Matrix &m) { return m.rows() == rows; });
  };
  if (!rowsAre(sample.context, sample.contextSize()) || !rowsAre(sample.full, 1) ||
      !rowsAre(sample.reduced, 1) || sample.full.size() != sample.reduced.size() ||
      (!sample.context.empty() && sample.context.size() != sample.full.size()))
    return makeError("the witness's activations do not belong together: expected a row in 'full' "
                     "and 'reduced' for each of the block's inputs, and equally many in 'context'");
  if (witness.direction.size() == 0 || witness.direction.norm() == 0)
    return makeError("the witness's direction is zero");
  return llvm::Error::success();
}

llvm::Expected<Replay> ctxc::replayWitness(const Witness &witness, MLIRContext &context,
                                           const SearchOptions &search) {
  if (llvm::Error error = checkShapes(witness))
    return std::move(error);
  if (llvm::Error error = checkNesting(witness.block, "the witness's block"))
    return std::move(error);
  auto module = parseSourceString<ModuleOp>(witness.block, &context);
  if (!module || !llvm::hasSingleElement(module->getOps<xf::BlockOp>()))
    return makeError("the witness's block is no module of one xf.block");
  PlanOptions options;
  options.scope = witness.allSites ? SiteScope::All : SiteScope::MLP;
  Subject subject(*module->getOps<xf::BlockOp>().begin(), options.scope);
  TensorWeights weights(witness.weights);
  auto both = subject.runs(witness.sample, weights);
  if (!both)
    return both.takeError();
  auto &[runs, resolution] = *both;
  Vector T_C = joined(runs.full), T = joined(runs.reduced);
  if (T_C.size() != witness.full.size() || T.size() != witness.reduced.size() ||
      T_C.size() != witness.direction.size())
    return makeError("the witness's outputs and direction do not have its block's size");
  Replay replay;
  replay.difference = std::max((T_C - witness.full).cwiseAbs().maxCoeff(),
                               (T - witness.reduced).cwiseAbs().maxCoeff());
  if (witness.byRank) {
    auto separation = subject.byRank(witness, weights);
    if (!separation)
      return separation.takeError();
    replay.leastError = separation->distance;
  } else {
    auto reachable = subject.reachable(witness.sample, weights);
    if (!reachable)
      return reachable.takeError();
    Vector w = witness.direction.normalized();
    replay.leastError = w.dot(T_C) - reachable->support(w);
    resolution.small |= reachable->isBounded() || subject.ofUnmoved(w) == w;
  }
  if (!resolution.large || !resolution.small)
    replay.leastError = 0; // nothing follows
  auto searched = searchPatch(subject.block, options, witness.sample, weights, {}, search);
  if (searched)
    replay.search = *searched;
  else
    llvm::consumeError(searched.takeError()); // too large to search
  return replay;
}
