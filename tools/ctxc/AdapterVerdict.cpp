#include "AdapterVerdict.h"
#include "ctxc/Report/CardVerdict.h"
#include "tools/CommandLine/Streams.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

OptionSpec driver::anywayOption() {
  return {"--anyway", "",
          "write the adapter even where the model is better off without it; without this option\n"
          "such a fit is an error (exit code 1), and nothing is written"};
}

/// What the adapter recovers of the texts that were fitted.
static Expected<double> shareOf(Model &model, const JudgedAdapter &judged,
                                llvm::ArrayRef<TextSequence> fitted) {
  EvaluateRequest about = judged.about;
  about.texts = fitted.vec();
  about.unrelated.clear();
  auto card = model.evaluate(judged.adapter, about);
  if (!card)
    return card.takeError();
  return card->all.share();
}

/// What the command knows beside the card.
static std::vector<std::string> causesOf(Opened &opened, llvm::ArrayRef<int64_t> prefix,
                                         llvm::ArrayRef<TextSequence> fitted) {
  std::vector<std::string> causes;
  if (!opened.context.chat && opened.model->hasChatTemplate())
    causes.push_back("the model has a chat template; where the context is a system message, "
                     "give it with --chat --system FILE, so that the template writes the texts");
  if (tokenBeforeItself(prefix, fitted))
    causes.push_back("the texts begin with the token that alone stands in front of them");
  return causes;
}

Expected<bool> driver::isRefused(const Arguments &arguments, Opened &opened,
                                 const JudgedAdapter &judged, llvm::ArrayRef<TextSequence> fitted) {
  CardVerdict verdict = verdictOn(judged.card, judged.settings);
  if (verdict.kind == CardVerdict::Kind::Good)
    return false;
  const bool isHarmful = verdict.kind == CardVerdict::Kind::Harmful;
  std::optional<double> fittedShare;
  if (isHarmful) {
    auto share = shareOf(*opened.model, judged, fitted);
    if (!share)
      return share.takeError();
    fittedShare = *share;
  }
  const std::string text = verdictOn(judged.card, judged.settings, fittedShare,
                                     causesOf(opened, judged.adapter.prefix, fitted))
                               .text();
  if (!isHarmful || arguments.has("--anyway")) {
    err() << "ctxc: warning: " << text << "\n";
    return false;
  }
  writeCard(out(), judged.card, judged.settings);
  out().flush();
  err() << "ctxc: error: " << text << ". Nothing was written; --anyway writes it\n";
  return true;
}

void driver::warnOfVerdict(const Card &card, const CardSettings &settings) {
  if (CardVerdict verdict = verdictOn(card, settings); verdict.kind != CardVerdict::Kind::Good)
    err() << "ctxc: warning: " << verdict.text() << "\n";
}
