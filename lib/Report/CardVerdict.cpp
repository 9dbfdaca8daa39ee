#include "ctxc/Report/CardVerdict.h"
#include "ctxc/Support/Count.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;

/// Below this share a user should know that much of the context is missing.
static constexpr double lowShare = 0.5;
/// Fewer fitted tokens, and fewer prompts, than these are the first thing to change.
static constexpr int64_t fewTokens = 1000, fewPrompts = 30;

static std::string percent(double share) { return llvm::formatv("{0:F1} %", 100 * share).str(); }

static CardVerdict::Kind kindOf(const Card &card, const CardSettings &settings) {
  const double share = card.all.share();
  if (!(share > 0) || (settings.keptShare && share < *settings.keptShare))
    return CardVerdict::Kind::Harmful;
  return share < lowShare || card.shareInterval.low <= 0 ? CardVerdict::Kind::Low
                                                         : CardVerdict::Kind::Good;
}

static std::string foundIn(const Card &card, const CardSettings &settings, bool isHarmful) {
  const double share = card.all.share();
  std::string found = "on text that was not fitted the adapter recovers " + percent(share) +
                      " of the context's effect";
  if (isHarmful && share > 0)
    return found + ", less than the kept tokens alone, " + percent(*settings.keptShare);
  if (isHarmful)
    return found + ", so that the model is better off without it";
  if (share >= lowShare)
    return found + llvm::formatv(", and so few texts judge that this may be chance (95 %: {0:F1} "
                                 "to {1:F1})",
                                 100 * card.shareInterval.low, 100 * card.shareInterval.high)
                       .str();
  return found;
}

CardVerdict ctxc::verdictOn(const Card &card, const CardSettings &settings,
                            std::optional<double> fittedShare, llvm::ArrayRef<std::string> causes) {
  CardVerdict verdict;
  verdict.kind = kindOf(card, settings);
  if (verdict.kind == CardVerdict::Kind::Good)
    return verdict;
  verdict.found = foundIn(card, settings, verdict.kind == CardVerdict::Kind::Harmful);
  verdict.causes = causes.vec();
  auto add = [&](std::string cause) { verdict.causes.push_back(std::move(cause)); };
  if (card.perplexityAdapted > 2 * card.perplexityPlain)
    add(llvm::formatv(
            "it harms the model itself: the perplexity of the text is {0:F1} with it, and "
            "{1:F1} without; a stronger ridge penalty or a lower rank changes less",
            card.perplexityAdapted, card.perplexityPlain)
            .str());
  if (fittedShare && *fittedShare > lowShare)
    add("of the fitted text " + percent(*fittedShare) +
        " are recovered: the text that judges is of another kind; fit more of its kind");
  if (const auto &fit = settings.fit) {
    if (fit->tokens < fewTokens)
      add("only " + counted(fit->tokens, "token") +
          " of text were fitted; expected a few thousand");
    if (fit->prompts > 0 && fit->prompts < fewPrompts)
      add("the fitted text answers only " + counted(fit->prompts, "prompt") + "; expected " +
          std::to_string(fewPrompts) + " and more");
  }
  return verdict;
}

std::string CardVerdict::text() const {
  std::string all = found;
  for (auto [i, cause] : llvm::enumerate(causes))
    all += (i ? "; " : ": ") + cause;
  return all;
}
