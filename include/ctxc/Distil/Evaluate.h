//===- Evaluate.h - how well an adapter replaces a context ----------------===//
//
// Three models read a text that nothing was fitted on: the full model, with the context in front;
// the plain model, without it; and the adapted model. The full model is the truth.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_EVALUATE_H
#define CTXC_DISTIL_EVALUATE_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

struct Front;

struct EvaluateRequest {
  std::vector<int64_t> context;        ///< with the tokenizer's tokens in front
  std::vector<int64_t> front;          ///< the tokens in front of every text of the plain model
  std::vector<TextSequence> texts;     ///< each directly follows the context
  std::vector<TextSequence> unrelated; ///< what the adapter should not change; may be empty
  uint64_t seed = 0;                   ///< of the bootstrap
  ProgressCall compared;               ///< progress over the predictions; may be empty
};

/// Means over some tokens of how a model's predictions differ from the full model's.
struct TokenGroup {
  int64_t tokens = 0;
  double klPlain = 0, klAdapted = 0;               ///< KL(full ‖ ·), in nats
  double agreementPlain = 0, agreementAdapted = 0; ///< how often the likeliest token is the full's
  /// 1 − KL(full ‖ adapted) / KL(full ‖ plain): how much of the context's effect is recovered.
  double share() const { return 1 - klAdapted / klPlain; }
};

struct Interval {
  double low = 0, high = 0;
};

/// A prediction at which the adapted model's likeliest token is not the full model's.
struct Failure {
  size_t text = 0;
  int64_t at = 0; ///< the index of the predicted token in the text
  int64_t full = 0, adapted = 0;
  double kl = 0; ///< KL(full ‖ adapted)
};

/// The text with the smallest recovered share.
struct WorstText {
  size_t text = 0;
  double share = 0;
};

struct Card {
  TokenGroup all;
  TokenGroup dependent; ///< those whose KL(full ‖ plain) is above one nat
  /// The tokens that also stand in the context, and that it makes more than twice as likely (names,
  /// numbers and words that answers take from it); and all other tokens.
  TokenGroup taken, others;
  /// Of conversations, the answers of each turn, by its number; empty where all are of one.
  std::vector<std::pair<int64_t, TokenGroup>> turns;
  std::vector<Failure> failures; ///< those of the largest divergences, at most three
  /// Among the texts on which the context's effect is at least half of its average.
  std::optional<WorstText> worst;
  Interval shareInterval; ///< 95 %, by bootstrap over the sequences
  /// Perplexity of the text's own tokens.
  double perplexityFull = 0, perplexityPlain = 0, perplexityAdapted = 0;
  /// How often the likeliest token is the text's own: of right answers, how many are given.
  double rightFull = 0, rightPlain = 0, rightAdapted = 0;
  /// How many tokens of a sequence come, on average, before the first at which the likeliest token
  /// is not the full model's: from there on, a greedy answer differs.
  double agreedPlain = 0, agreedAdapted = 0;
  /// KL(plain ‖ ·) on unrelated text: of the adapted model, and of the full one. 0 without such
  /// text.
  double drift = 0, driftOfContext = 0;
  int64_t unrelatedTokens = 0;
  int64_t numbers = 0;     ///< the adapter's
  int64_t tokensSaved = 0; ///< for each request: the context's tokens that no longer stand in front
  /// How long the plain model takes to read the context, and what still stands in front.
  double secondsOfContext = 0, secondsOfPrefix = 0;
  int64_t sequences = 0;
  double secondsSaved() const { return secondsOfContext - secondsOfPrefix; }
};

/// Fails where there is less memory than it takes to judge `adapter`; null: one that changes every
/// matrix that is fitted, and has the whole context in front.
llvm::Error checkRoomToEvaluate(SplitModel model, const EvaluateRequest &request,
                                const Adapter *adapter = nullptr);

/// Errors: less memory than it needs; a text without a token to predict; a model without a head; a
/// context that changes nothing on this text, so that there is no share; an adapter that does not
/// fit the model; positions that the model does not have; logits that are not finite.
llvm::Expected<Card> evaluate(SplitModel model, const Adapter &adapter,
                              const EvaluateRequest &request);

/// Judges several adapters by the same texts: what the full and the plain model say of them is
/// computed with the first adapter, and kept. The memory for this is that of the full model's
/// logits for all answers and of the plain model's for the unrelated texts.
class Judge {
public:
  explicit Judge(EvaluateRequest request) : Judge(std::move(request), /*keeps=*/true) {}
  Judge(Judge &&) noexcept;
  ~Judge();

  /// As ctxc::evaluate; `model` is always the same.
  llvm::Expected<Card> evaluate(SplitModel model, const Adapter &adapter);

private:
  friend llvm::Expected<Card> evaluate(SplitModel model, const Adapter &adapter,
                                       const EvaluateRequest &request);
  struct Known;
  Judge(EvaluateRequest request, bool keeps);
  llvm::Error addSeconds(const SplitModel &model, const Adapter &adapter, Card &card);
  llvm::Error addDrift(const SplitModel &model, Weights &adaptedWeights, const Front &prefix,
                       Card &card);

  EvaluateRequest request;
  bool keeps;
  std::unique_ptr<Known> known;
};

} // namespace ctxc

#endif // CTXC_DISTIL_EVALUATE_H
