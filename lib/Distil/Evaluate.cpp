#include "ctxc/Distil/Evaluate.h"
#include "Comparison.h"
#include "Random.h"
#include "Room.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Timer.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace ctxc;

namespace {

TokenGroup groupOf(llvm::ArrayRef<Scores> scores, llvm::function_ref<bool(const Scores &)> holds) {
  TokenGroup group;
  for (const Scores &s : scores) {
    if (!holds(s))
      continue;
    ++group.tokens;
    group.klPlain += s.klPlain;
    group.klAdapted += s.klAdapted;
    group.agreementPlain += s.agreesPlain;
    group.agreementAdapted += s.agreesAdapted;
  }
  for (double *sum :
       {&group.klPlain, &group.klAdapted, &group.agreementPlain, &group.agreementAdapted})
    *sum /= std::max<int64_t>(group.tokens, 1);
  return group;
}

/// The middle 95 % of the share, over resamples of the sequences.
Interval bootstrap(llvm::ArrayRef<Scores> scores, size_t texts, uint64_t seed) {
  std::vector<double> plain(texts), adapted(texts);
  for (const Scores &s : scores) {
    plain[s.prediction.text] += s.klPlain;
    adapted[s.prediction.text] += s.klAdapted;
  }
  constexpr int resamples = 2000;
  std::vector<double> shares;
  Random random(seed);
  for (int i = 0; i < resamples; ++i) {
    double sumPlain = 0, sumAdapted = 0;
    for (size_t k = 0; k < texts; ++k) {
      size_t text = random.next() % texts;
      sumPlain += plain[text];
      sumAdapted += adapted[text];
    }
    if (sumPlain > 0)
      shares.push_back(1 - sumAdapted / sumPlain);
  }
  llvm::sort(shares);
  if (shares.empty())
    return {};
  return {shares[shares.size() / 40], shares[shares.size() - 1 - shares.size() / 40]};
}

/// How many predictions of a text come before the first that does not agree, on the average.
double agreedTokens(llvm::ArrayRef<Scores> scores, size_t texts, bool Scores::*agrees) {
  std::vector<int64_t> agreed(texts);
  std::vector<bool> parted(texts);
  for (const Scores &s : scores) {
    const size_t text = s.prediction.text;
    parted[text] = parted[text] || !(s.*agrees);
    agreed[text] += !parted[text];
  }
  double sum = 0;
  for (int64_t count : agreed)
    sum += count;
  return sum / texts;
}

/// The answers of each turn, where there are several.
void addTurns(llvm::ArrayRef<Scores> scores, const EvaluateRequest &request, Card &card) {
  std::set<int64_t> turns;
  for (const TextSequence &text : request.texts)
    turns.insert(text.turn);
  for (int64_t turn : turns)
    if (turns.size() > 1)
      card.turns.emplace_back(turn, groupOf(scores, [&](const Scores &s) {
                                return request.texts[s.prediction.text].turn == turn;
                              }));
}

/// Which tokens and which text come off worst.
void addFailures(llvm::ArrayRef<Scores> scores, const EvaluateRequest &request, Card &card) {
  llvm::DenseSet<int64_t> stored;
  for (int64_t token : llvm::ArrayRef(request.context).drop_front(request.front.size()))
    stored.insert(token);
  auto isTaken = [&](const Scores &s) {
    return stored.contains(s.prediction.next) && s.lossPlain - s.lossFull > std::log(2.0);
  };
  card.taken = groupOf(scores, isTaken);
  card.others = groupOf(scores, [&](const Scores &s) { return !isTaken(s); });

  constexpr size_t most = 3;
  for (const Scores &s : scores)
    if (!s.agreesAdapted)
      card.failures.push_back({s.prediction.text, s.prediction.row + 1, s.likeliestFull,
                               s.likeliestAdapted, s.klAdapted});
  llvm::sort(card.failures, [](const Failure &a, const Failure &b) {
    return std::tuple(-a.kl, a.text, a.at) < std::tuple(-b.kl, b.text, b.at);
  });
  card.failures.resize(std::min(card.failures.size(), most));

  // A share of next to nothing says nothing.
  for (size_t text = 0; text < request.texts.size(); ++text) {
    TokenGroup own = groupOf(scores, [&](const Scores &s) { return s.prediction.text == text; });
    if (own.tokens && own.klPlain >= card.all.klPlain / 2 &&
        (!card.worst || own.share() < card.worst->share))
      card.worst = WorstText{text, own.share()};
  }
}

/// How long the model reads `tokens`: the shorter of two times, of which the first may have to
/// bring the weights into memory.
llvm::Expected<double> secondsToRead(const SplitModel &model, llvm::ArrayRef<int64_t> tokens) {
  double shortest = HUGE_VAL;
  for (int round = 0; round < 2 && !tokens.empty(); ++round) {
    double seconds = 0;
    llvm::Error error = [&] {
      ctxc::Timer timer(seconds);
      return TextReader::read(model, model.weights, {}, TextSequence{tokens.vec(), 0}).takeError();
    }();
    if (error)
      return std::move(error);
    shortest = std::min(shortest, seconds);
  }
  return tokens.empty() ? 0 : shortest;
}

} // namespace

/// What the first adapter leaves for the next ones.
struct Judge::Known {
  std::optional<Comparison> texts, unrelated;
  std::optional<double> secondsOfContext;
};

Judge::Judge(EvaluateRequest request, bool keeps)
    : request(std::move(request)), keeps(keeps), known(std::make_unique<Known>()) {}
Judge::Judge(Judge &&) noexcept = default;
Judge::~Judge() = default;

llvm::Error Judge::addSeconds(const SplitModel &model, const Adapter &adapter, Card &card) {
  if (!known->secondsOfContext) {
    known->secondsOfContext = 0;
    if (llvm::Error error =
            secondsToRead(model, request.context).moveInto(*known->secondsOfContext))
      return error;
  }
  card.secondsOfPrefix = card.secondsOfContext = *known->secondsOfContext;
  const bool isInCache = !adapter.seen.empty() || !adapter.entries.empty();
  if (isInCache) // nothing is read for a request
    card.secondsOfPrefix = 0;
  if (isInCache || adapter.prefix == request.context)
    return llvm::Error::success();
  return secondsToRead(model, adapter.prefix).moveInto(card.secondsOfPrefix);
}

/// What each model says of `texts`, which follow `full` or `plain`; `comparison` is of them, or
/// empty.
static llvm::Expected<std::vector<Scores>>
score(const SplitModel &model, Weights &adaptedWeights, const Front &prefix,
      const EvaluateRequest &request, llvm::ArrayRef<int64_t> full, llvm::ArrayRef<int64_t> plain,
      llvm::ArrayRef<TextSequence> texts, std::optional<Comparison> &comparison, bool keeps) {
  if (!comparison) {
    auto read = Comparison::read(model, full, plain, texts, keeps);
    if (!read)
      return read.takeError();
    comparison.emplace(std::move(*read));
  }
  auto adapted = TextReader::read(model, adaptedWeights, prefix, texts);
  if (!adapted)
    return adapted.takeError();
  return comparison->with(*adapted, request.compared);
}

llvm::Error Judge::addDrift(const SplitModel &model, Weights &adaptedWeights, const Front &prefix,
                            Card &card) {
  if (predictionsOf(request.unrelated).empty())
    return llvm::Error::success();
  // The plain model is the truth here.
  auto scores = score(model, adaptedWeights, prefix, request, request.front, request.context,
                      request.unrelated, known->unrelated, keeps);
  if (!scores)
    return scores.takeError();
  TokenGroup group = groupOf(*scores, [](const Scores &) { return true; });
  card.driftOfContext = group.klPlain;
  card.drift = group.klAdapted;
  card.unrelatedTokens = group.tokens;
  return llvm::Error::success();
}

llvm::Expected<Card> ctxc::evaluate(SplitModel model, const Adapter &adapter,
                                    const EvaluateRequest &request) {
  return Judge(request, /*keeps=*/false).evaluate(model, adapter);
}

/// Fails where a text has no token to predict.
static llvm::Error checkTexts(llvm::ArrayRef<TextSequence> texts) {
  if (texts.empty())
    return makeError("there is no text to judge by");
  for (auto [i, text] : llvm::enumerate(texts)) {
    if (!predictionsOf(text).empty())
      continue;
    const std::string which =
        "text " + std::to_string(i + 1) + " of " + std::to_string(texts.size());
    if (text.prompt > 0)
      return makeError(which + " has no token to predict: it is a prompt of " +
                       counted(text.tokens.size(), "token") +
                       " without an answer; write the answer behind it");
    return makeError(which + " has no token to predict: it has " +
                     counted(text.tokens.size(), "token") +
                     ", and the first one has none before it; write a longer text, or a prompt and "
                     "an answer");
  }
  return llvm::Error::success();
}

llvm::Expected<Card> Judge::evaluate(SplitModel model, const Adapter &adapter) {
  if (llvm::Error error = checkTexts(request.texts))
    return std::move(error);
  if (llvm::Error error = checkRoomToEvaluate(model, request, keeps, &adapter))
    return std::move(error);
  AdaptedWeights weights(model.weights);
  if (llvm::Error error = weights.add(adapter))
    return std::move(error);
  auto prefix = OwnedFront::make(model, adapter);
  if (!prefix)
    return prefix.takeError();
  auto scores = score(model, weights, prefix->get(), request, request.context, request.front,
                      request.texts, known->texts, keeps);
  if (!scores)
    return scores.takeError();

  Card card;
  const size_t texts = request.texts.size();
  card.all = groupOf(*scores, [](const Scores &) { return true; });
  card.dependent = groupOf(*scores, [](const Scores &s) { return s.klPlain > 1; });
  if (card.all.klPlain < 1e-9)
    return makeError(
        "the context changes nothing on this text, so that there is no effect of which "
        "a share could be recovered");
  card.shareInterval = bootstrap(*scores, texts, request.seed);
  double losses[3] = {};
  for (const Scores &s : *scores) {
    losses[0] += s.lossFull;
    losses[1] += s.lossPlain;
    losses[2] += s.lossAdapted;
    card.rightFull += double(s.rightFull) / scores->size();
    card.rightPlain += double(s.rightPlain) / scores->size();
    card.rightAdapted += double(s.rightAdapted) / scores->size();
  }
  card.perplexityFull = std::exp(losses[0] / scores->size());
  card.perplexityPlain = std::exp(losses[1] / scores->size());
  card.perplexityAdapted = std::exp(losses[2] / scores->size());
  card.agreedPlain = agreedTokens(*scores, texts, &Scores::agreesPlain);
  card.agreedAdapted = agreedTokens(*scores, texts, &Scores::agreesAdapted);
  card.numbers = adapter.size();
  card.tokensSaved = int64_t(request.context.size()) - adapter.inFront();
  card.sequences = texts;
  addTurns(*scores, request, card);
  addFailures(*scores, request, card);
  if (llvm::Error error = addSeconds(model, adapter, card))
    return std::move(error);
  if (llvm::Error error = addDrift(model, weights, prefix->get(), card))
    return std::move(error);
  return card;
}
