#include "ctxc/Distil/Evaluate.h"
#include "Random.h"
#include "TextReader.h"
#include "ctxc/Support/Timer.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

namespace {

/// What is known of one prediction by three models.
struct Scores {
  Prediction prediction;
  int64_t likeliestFull, likeliestAdapted;
  double klPlain, klAdapted;
  bool agreesPlain, agreesAdapted;
  double lossFull, lossPlain, lossAdapted;
  bool rightFull, rightPlain, rightAdapted; ///< whether the likeliest token is the text's own
};

/// None where some logits are not finite.
std::optional<Scores> compare(const Prediction &prediction, llvm::ArrayRef<float> full,
                              llvm::ArrayRef<float> plain, llvm::ArrayRef<float> adapted) {
  Distribution p(full), q(plain), r(adapted);
  if (!p.isFinite() || !q.isFinite() || !r.isFinite())
    return std::nullopt;
  return Scores{prediction,
                p.largest,
                r.largest,
                divergence(p, q),
                divergence(p, r),
                p.largest == q.largest,
                p.largest == r.largest,
                -p[prediction.next],
                -q[prediction.next],
                -r[prediction.next],
                p.largest == prediction.next,
                q.largest == prediction.next,
                r.largest == prediction.next};
}

/// Compares three models on all predictions, some rows at a time: their logits are as wide as the
/// vocabulary.
llvm::Expected<std::vector<Scores>> score(TextReader &full, TextReader &plain, TextReader &adapted,
                                          llvm::ArrayRef<Prediction> predictions,
                                          const ProgressCall &compared) {
  constexpr size_t together = 64;
  std::vector<Scores> scores;
  tell(compared, 0, predictions.size());
  for (size_t from = 0; from < predictions.size(); from += together) {
    auto some = predictions.slice(from, std::min(together, predictions.size() - from));
    std::vector<float> logits[3];
    TextReader *readers[] = {&full, &plain, &adapted};
    for (int i : {0, 1, 2}) {
      auto rows = llvm::map_to_vector(
          some, [&](const Prediction &p) { return readers[i]->firstRow(p.text) + p.row; });
      auto made = readers[i]->passage.logits(rows);
      if (!made)
        return made.takeError();
      logits[i] = std::move(*made);
    }
    const size_t width = logits[0].size() / some.size();
    std::vector<std::optional<Scores>> found(some.size());
    full.parallelFor(some.size(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto of = [&](int reader) {
          return llvm::ArrayRef(logits[reader]).slice(i * width, width);
        };
        found[i] = compare(some[i], of(0), of(1), of(2));
      }
    });
    for (const std::optional<Scores> &each : found) {
      if (!each)
        return makeError("the logits of a token of the text are not finite");
      scores.push_back(*each);
    }
    tell(compared, scores.size(), predictions.size());
  }
  return scores;
}

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

llvm::Error addSeconds(const SplitModel &model, const Adapter &adapter,
                       const EvaluateRequest &request, Card &card) {
  if (llvm::Error error = secondsToRead(model, request.context).moveInto(card.secondsOfContext))
    return error;
  card.secondsOfPrefix = card.secondsOfContext;
  if (adapter.prefix == request.context)
    return llvm::Error::success();
  return secondsToRead(model, adapter.prefix).moveInto(card.secondsOfPrefix);
}

llvm::Error addDrift(const SplitModel &model, Weights &adaptedWeights, const Adapter &adapter,
                     const EvaluateRequest &request, Card &card) {
  std::vector<Prediction> predictions = predictionsOf(request.unrelated);
  if (predictions.empty())
    return llvm::Error::success();
  auto plain = TextReader::read(model, model.weights, request.front, request.unrelated);
  if (!plain)
    return plain.takeError();
  auto full = TextReader::read(model, model.weights, request.context, request.unrelated);
  if (!full)
    return full.takeError();
  auto adapted = TextReader::read(model, adaptedWeights, adapter.prefix, request.unrelated);
  if (!adapted)
    return adapted.takeError();
  auto scores = score(*plain, *full, *adapted, predictions,
                      request.compared); // the plain model is the truth here
  if (!scores)
    return scores.takeError();
  TokenGroup group = groupOf(*scores, [](const Scores &) { return true; });
  card.driftOfContext = group.klPlain;
  card.drift = group.klAdapted;
  card.unrelatedTokens = group.tokens;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Card> ctxc::evaluate(SplitModel model, const Adapter &adapter,
                                    const EvaluateRequest &request) {
  std::vector<Prediction> predictions = predictionsOf(request.texts);
  if (predictions.empty())
    return makeError(
        "the text has no token to predict; expected one with two tokens, or an answer");
  AdaptedWeights weights(model.weights);
  if (llvm::Error error = weights.add(adapter))
    return std::move(error);
  auto full = TextReader::read(model, model.weights, request.context, request.texts);
  if (!full)
    return full.takeError();
  auto plain = TextReader::read(model, model.weights, request.front, request.texts);
  if (!plain)
    return plain.takeError();
  auto adapted = TextReader::read(model, weights, adapter.prefix, request.texts);
  if (!adapted)
    return adapted.takeError();
  auto scores = score(*full, *plain, *adapted, predictions, request.compared);
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
  card.tokensSaved = int64_t(request.context.size()) - int64_t(adapter.prefix.size());
  card.sequences = texts;
  addFailures(*scores, request, card);
  if (llvm::Error error = addSeconds(model, adapter, request, card))
    return std::move(error);
  if (llvm::Error error = addDrift(model, weights, adapter, request, card))
    return std::move(error);
  return card;
}
