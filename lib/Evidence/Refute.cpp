// A rejection stands with a counterexample that was found and evaluated again.
#include "ctxc/Evidence/Witness.h"

using namespace mlir;
using namespace ctxc;

Refuted ctxc::refuteByWitness(xf::BlockOp block, const PlanOptions &options, StringRef rule) {
  WitnessOptions how;
  how.seeds = rule.empty() ? 3 : 8;
  how.clear = 0; // any will do
  how.rule = rule;
  how.anySize = false;
  auto unable = [](llvm::Error error) {
    return Refuted{std::nullopt,
                   "no counterexample could be looked for: " + llvm::toString(std::move(error))};
  };
  auto witness = findWitness(block, options, options.layer, how);
  if (!witness)
    return unable(witness.takeError());
  if (!*witness)
    return {std::nullopt, "no weights and context were found that show it"};
  SearchOptions search;
  search.restarts = 2;
  search.steps = 20;
  search.budget = 2'000'000;
  auto replay = replayWitness(**witness, *block.getContext(), search);
  if (!replay)
    return unable(replay.takeError());
  if (!replay->confirms(**witness))
    return {std::nullopt, "the counterexample that was found is not confirmed"};
  std::string words;
  if (!(*witness)->sizes.empty())
    words = "a counterexample was found in smaller sizes: " + (*witness)->sizes;
  return {(*witness)->leastError, words};
}
