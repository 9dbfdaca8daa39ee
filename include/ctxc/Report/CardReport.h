//===- CardReport.h - an adapter's card as text and as JSON ---------------===//
#ifndef CTXC_REPORT_CARDREPORT_H
#define CTXC_REPORT_CARDREPORT_H

#include "ctxc/Distil/Evaluate.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// Where an adapter comes from, and what its card was measured on.
struct CardSettings {
  std::string model, modelHash;
  int64_t contextTokens = 0; ///< with the tokens in front
  std::vector<int64_t> prefix;
  int64_t rank = 0;
  /// Where tokens of the context are kept: what these recover by themselves, without the adapter.
  std::optional<double> keptShare;
  /// None where the adapter was made elsewhere.
  struct Fit {
    int64_t texts = 0, tokens = 0, protectedTokens = 0;
    uint64_t seed = 0;       ///< of the order of the texts, by which some are held out
    bool splitsText = false; ///< the held-out texts are some of --text
    double seconds = 0;
    /// Of the texts that the model wrote, unrelated ones too.
    int64_t sampledTokens = 0;
    double sampleSeconds = 0;
  };
  std::optional<Fit> fit;
  uint64_t bootstrapSeed = 0;
};

void writeCard(llvm::raw_ostream &os, const Card &card, const CardSettings &settings);
/// `format` is "ctxc-card"; docs/distil.md describes the members.
llvm::json::Value cardJson(const Card &card, const CardSettings &settings);

} // namespace ctxc

#endif // CTXC_REPORT_CARDREPORT_H
