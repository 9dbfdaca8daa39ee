// How many virtual entries a context needs, by texts that are left out.
#include "Sequences.h"
#include "ctxc/Distil/Entries.h"
#include "ctxc/Distil/Evaluate.h"

using namespace ctxc;

llvm::Expected<ChosenEntries> ctxc::chooseEntries(SplitModel model, const DistilRequest &request) {
  constexpr size_t every = 5;
  constexpr double enough = 0.95;
  constexpr int64_t fewest = 8, most = 64, leastPart = 20;
  DistilRequest some = request;
  some.texts.clear();
  EvaluateRequest leftOut;
  leftOut.context = request.context;
  leftOut.front = plainFront(request);
  for (auto [i, text] : llvm::enumerate(request.texts))
    (i % every == every / 2 ? leftOut.texts : some.texts).push_back(text);
  if (leftOut.texts.empty() || some.texts.empty()) // too few to leave one out
    leftOut.texts = some.texts = request.texts;
  some.fitted = nullptr;
  ChosenEntries chosen;
  Judge judge(std::move(leftOut));
  const int64_t places = request.context.size();
  double best = -HUGE_VAL;
  for (int64_t count = fewest; count <= most || count * leastPart <= 2 * places; count *= 2) {
    some.fit.entries = std::min(count, places);
    auto entries = fitEntries(model, some);
    if (!entries)
      return entries.takeError();
    Adapter adapter;
    adapter.entries = std::move(*entries);
    auto card = judge.evaluate(model, adapter);
    if (!card)
      return card.takeError();
    chosen.tried.push_back({some.fit.entries, card->all.share()});
    best = std::max(best, card->all.share());
    if (count >= places || best >= enough) // no number recovers more than all of it
      break;
  }
  DistilRequest all = request;
  all.fit.entries = llvm::find_if(chosen.tried, [&](const EntriesTried &tried) {
                      return tried.share >= enough * best || tried.share == best;
                    })->count;
  if (llvm::Error error = distil(model, all).moveInto(chosen.made))
    return std::move(error);
  return chosen;
}
