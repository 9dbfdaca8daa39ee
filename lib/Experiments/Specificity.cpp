#include "ctxc/Experiments/Specificity.h"
#include "ctxc/Numerics/Metrics.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::ArrayRef;
using llvm::Expected;

/// log Σ exp of the logits.
static double logSum(ArrayRef<double> logits) {
  double largest = logits[argmax(logits)], sum = 0;
  for (double x : logits)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

AnswerChange experiments::changeOf(ArrayRef<double> before, ArrayRef<double> after) {
  AnswerChange change;
  double logP = logSum(before), logQ = logSum(after);
  for (auto [a, b] : llvm::zip_equal(before, after)) {
    double p = std::exp(a - logP), q = std::exp(b - logQ);
    change.totalVariation += std::fabs(p - q) / 2;
    change.divergence += p * ((a - logP) - (b - logQ));
    change.linf = std::max(change.linf, std::fabs(a - b));
  }
  change.divergence = std::max(change.divergence, 0.0); // less only by rounding
  change.sameToken = argmax(before) == argmax(after);
  return change;
}

Patch experiments::partOf(const Patch &patch, PatchPart part) {
  Patch result;
  for (const ParameterPatch &parameter : patch.parameters) {
    bool matrix = parameter.kind == ParameterPatch::Kind::Rank1;
    if (part == PatchPart::Whole || matrix == (part == PatchPart::Matrices))
      result.parameters.push_back(parameter);
  }
  return result;
}

Expected<Answers> experiments::answersInContext(Executor &executor, ArrayRef<int64_t> tokens,
                                                ArrayRef<int64_t> positions, const Patch *patch) {
  std::unique_ptr<Run> run = executor.start(tokens.size(), Keeps::Seen);
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, tokens.size()));
  ForwardOptions options;
  options.patch = patch;
  Answers answers;
  // Each token's logits are a whole vocabulary: they are computed only for the tokens that are
  // asked for.
  int64_t first = positions.front();
  if (first > 0 && !executor.isBidirectional())
    if (auto logits = executor.forward(*run, tokens.take_front(first),
                                       ArrayRef(all).take_front(first), options);
        !logits)
      return logits.takeError();
  int64_t from = executor.isBidirectional() ? 0 : first;
  options.allLogits = true;
  auto logits =
      executor.forward(*run, tokens.drop_front(from), ArrayRef(all).drop_front(from), options);
  if (!logits)
    return logits.takeError();
  const size_t width = logits->size() / (tokens.size() - from);
  for (int64_t position : positions) {
    auto begin = logits->begin() + (position - from) * width;
    answers.logits.emplace_back(begin, begin + width);
  }
  return answers;
}

Expected<Answers> experiments::answersAlone(Executor &executor, ArrayRef<int64_t> tokens,
                                            ArrayRef<int64_t> positions, const Patch *patch) {
  std::unique_ptr<Run> run = executor.start(1);
  ForwardOptions options;
  options.patch = patch;
  options.append = false;
  Answers answers;
  for (int64_t position : positions) {
    auto logits = executor.forward(*run, tokens[position], position, options);
    if (!logits)
      return logits.takeError();
    answers.logits.push_back(std::move(*logits));
  }
  return answers;
}

/// Runs the tokens from `position` on after each other, with nothing before them.
static Expected<Answers> answersFollowing(Executor &executor, ArrayRef<int64_t> tokens,
                                          int64_t position, const Patch *patch) {
  std::unique_ptr<Run> run = executor.start(tokens.size() - position, Keeps::Seen);
  ForwardOptions options;
  options.patch = patch;
  Answers answers;
  for (int64_t at = position; at < int64_t(tokens.size()); ++at) {
    auto logits = executor.forward(*run, tokens[at], at, options);
    if (!logits)
      return logits.takeError();
    answers.logits.push_back(std::move(*logits));
  }
  return answers;
}

Expected<std::vector<StaleStep>> experiments::staleness(Executor &executor,
                                                        ArrayRef<int64_t> tokens, int64_t position,
                                                        const Patch &patch, const Answers &full) {
  auto positions = llvm::to_vector(llvm::seq<int64_t>(position, tokens.size()));
  Answers runs[4];
  for (bool patched : {true, false}) {
    const Patch *with = patched ? &patch : nullptr;
    auto alone = answersAlone(executor, tokens, positions, with);
    if (!alone)
      return alone.takeError();
    auto following = answersFollowing(executor, tokens, position, with);
    if (!following)
      return following.takeError();
    runs[patched ? 0 : 2] = std::move(*alone);
    runs[patched ? 1 : 3] = std::move(*following);
  }
  std::vector<StaleStep> steps;
  for (auto [i, at] : llvm::enumerate(positions)) {
    const std::vector<double> &wanted = full.logits[i];
    steps.push_back({int64_t(i), at, changeOf(wanted, runs[0].logits[i]),
                     changeOf(wanted, runs[1].logits[i]), changeOf(wanted, runs[2].logits[i]),
                     changeOf(wanted, runs[3].logits[i])});
  }
  return steps;
}
