//===- CardReport.h - an adapter's card as text and as JSON ---------------===//
//
// CardPage draws the same card.
//
#ifndef CTXC_REPORT_CARDREPORT_H
#define CTXC_REPORT_CARDREPORT_H

#include "ctxc/Distil/Entries.h"
#include "ctxc/Distil/Evaluate.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// An answer as text: the part that agrees with the full model's, and the rest from the first other
/// token on.
struct AnswerText {
  std::string same, other;
};

/// The likeliest answers to a prompt, side by side.
struct ExampleText {
  std::string prompt;
  AnswerText full, adapted, plain; ///< the full model's has no other part
};

/// A failure of the adapted model: the end of the text before it, and both likeliest tokens.
struct FailureText {
  std::string before, full, adapted;
};

/// Another fit of the same context, judged on the same texts.
struct CurvePoint {
  int64_t rank = 0, tokens = 0, numbers = 0;
  double share = 0;
  Interval interval;
};

/// A fit with another weight of the unrelated texts.
struct TradeOff {
  double protection = 0;
  double share = 0; ///< on the card's texts
  double drift = 0; ///< relative to the context's own, on the texts that chose among these fits
};

/// Where an adapter comes from, and what its card was measured on.
struct CardSettings {
  std::string model, modelHash;
  int64_t contextTokens = 0;         ///< with the tokens in front
  std::vector<int64_t> prefix, seen; ///< as the adapter's
  int64_t rank = 0;
  int64_t entries = 0; ///< virtual entries of the cache, in the place of changed weights
  std::vector<EntriesTried> entriesTried; ///< with how many, on texts that were left out
  std::string whyWeights; ///< why weights change where virtual entries would by default
  double strength = 1;    ///< by which the changes are multiplied
  /// If tokens of the context are kept: what these recover by themselves, without the adapter.
  std::optional<double> keptShare;
  /// None if the adapter was made elsewhere.
  struct Fit {
    int64_t texts = 0, tokens = 0, protectedTokens = 0;
    uint64_t seed = 0;       ///< of the order of the texts, by which some are held out
    bool splitsText = false; ///< the held-out texts are some of --text
    double seconds = 0, processorSeconds = 0; ///< of all threads together
    /// Gradient passes: how many were allowed and how many were chosen, how many texts chose them,
    /// and the divergence on these texts (or, without such texts, on the fitted ones) before and
    /// after them.
    int64_t mostPasses = 0, passes = 0, choosingTexts = 0;
    double divergenceBefore = 0, divergenceAfter = 0;
    /// Of the texts that the model wrote, including unrelated ones.
    int64_t sampledTokens = 0;
    int64_t writtenPrompts = 0; ///< prompts that the model added to those of a user
    int64_t prompts = 0;        ///< different ones that the fitted texts begin with; 0: unknown
    /// The closed form recovers more of the text that judges than what the passes made of it: it is
    /// what the adapter has.
    bool dropsPasses = false;
    double sampleSeconds = 0;
  };
  std::optional<Fit> fit;
  uint64_t bootstrapSeed = 0;
  std::vector<ExampleText> examples;
  std::string worstText;             ///< the beginning of the worst text
  std::vector<FailureText> failures; ///< of the card's, in their order
  std::string objective;             ///< if it is another than to recover the context
  std::vector<TradeOff> tradeOff;    ///< by rising protection; empty unless drift is bounded
  std::vector<CurvePoint> curve;     ///< including this fit's own point
};

/// The number of requests after which the adapter has saved the time that it took to make it,
/// including the time in which the model wrote texts. None if this is unknown or never happens.
std::optional<int64_t> requestsToPay(const Card &card, const CardSettings &settings);

/// Whether there are enough tokens that answers take from the context, and enough others, to report
/// the two separately.
bool saysWhatIsTaken(const Card &card);

/// "an adapter of rank 16", "16 virtual entries".
std::string whatIsFitted(const CardSettings &settings);

void writeCard(llvm::raw_ostream &os, const Card &card, const CardSettings &settings);
/// `format` is "ctxc-card"; docs/distil.md describes the members.
llvm::json::Value cardJson(const Card &card, const CardSettings &settings);

/// A line on what was fitted, and one on what refined it, where something did.
void writeFitted(llvm::raw_ostream &os, const CardSettings::Fit &fit);
void writeRefined(llvm::raw_ostream &os, const CardSettings::Fit &fit);
void writeSampled(llvm::raw_ostream &os, const CardSettings::Fit &fit);
llvm::json::Value fitJson(const CardSettings::Fit &fit);

} // namespace ctxc

#endif // CTXC_REPORT_CARDREPORT_H
