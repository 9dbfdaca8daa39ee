#include "ctxc/CardPage/CardPage.h"
#include "ctxc/Page/Frame.h"
#include "ctxc/Page/Html.h"
#include "ctxc/Support/Count.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::page;
using llvm::StringRef;

namespace {

/// What every part of the page shows.
struct Shown {
  const Card &card;
  const CardSettings &settings;
};

std::string wholePercent(double fraction) {
  return std::to_string(std::lround(100 * fraction)) + " %";
}

std::string rangeText(const Interval &interval) {
  return std::to_string(std::lround(100 * interval.low)) + " to " + wholePercent(interval.high);
}

/// A share can be below zero, where the adapter is worse than nothing; its bar has no length then.
double barLength(double share) { return std::clamp(share, 0.0, 1.0); }

void beginSection(llvm::raw_ostream &os, StringRef id, StringRef heading, StringRef caption) {
  os << "<section aria-labelledby=\"" << id << "\"><h2 id=\"" << id << "\">" << heading
     << "</h2>\n<figure><figcaption>" << caption << "</figcaption>\n";
}

constexpr StringRef endOfSection = "</figure></section>\n";

void groupRow(Table &table, StringRef name, const TokenGroup &group) {
  if (group.tokens)
    table.row({name.str(), std::to_string(group.tokens), number(group.klPlain),
               number(group.klAdapted), percent(group.share()), percent(group.agreementPlain),
               percent(group.agreementAdapted)});
}

void writeShares(llvm::raw_ostream &os, Shown of) {
  const Card &card = of.card;
  beginSection(
      os, "recovered", "How much of the context is recovered",
      "1 − KL(full ‖ adapted) / KL(full ‖ plain), over the tokens of the answers that it is judged "
      "by. 0 % is an adapter that does nothing, 100 % one that is the context. In brackets "
      "the middle 95 % of a bootstrap over texts.");
  std::vector<Bar> bars = {{"all tokens", barLength(card.all.share()),
                            percent(card.all.share()) + " (" + rangeText(card.shareInterval) + ")",
                            counted(card.all.tokens, "token")}};
  if (card.dependent.tokens)
    bars.push_back({"the most dependent tokens", barLength(card.dependent.share()),
                    percent(card.dependent.share()),
                    counted(card.dependent.tokens, "token") + " whose KL is above one nat"});
  if (of.settings.keptShare)
    bars.push_back({"the kept tokens by themselves", barLength(*of.settings.keptShare),
                    percent(*of.settings.keptShare), "without the adapter"});
  writeBars(os, bars, "full", "Shares recovered");
  {
    Table table(os, "Shares recovered",
                {"", "tokens", "KL without", "KL adapted", "recovered",
                 "same likeliest token without", "adapted"});
    groupRow(table, "all tokens", card.all);
    groupRow(table, "most dependent (above 1 nat)", card.dependent);
  }
  os << endOfSection;
}

void writeAnswer(llvm::raw_ostream &os, StringRef hue, StringRef title, const AnswerText &answer) {
  os << "<div class=\"" << hue << "\"><h3>" << title << "</h3><p class=\"answer\"><bdi>"
     << escaped(answer.same);
  if (!answer.other.empty())
    os << "<mark>" << escaped(answer.other) << "</mark>";
  if (answer.same.empty() && answer.other.empty())
    os << "<span class=\"note\">no token</span>";
  os << "</bdi></p></div>\n";
}

void writeExamples(llvm::raw_ostream &os, Shown of) {
  if (of.settings.examples.empty())
    return;
  beginSection(
      os, "answers", "Answers side by side",
      "The likeliest answers to prompts of the texts that it is judged by. Marked is what comes "
      "from the first token on that the model with the context would not have written.");
  for (const ExampleText &example : of.settings.examples) {
    os << "<p class=\"asked\"><bdi>"
       << (example.prompt.empty() ? "(directly behind the context)" : escaped(example.prompt))
       << "</bdi></p>\n<div class=\"columns answers\">\n";
    writeAnswer(os, "full", "With the context", example.full);
    writeAnswer(os, "patched", "With the adapter", example.adapted);
    writeAnswer(os, "unpatched", "Without", example.plain);
    os << "</div>\n";
  }
  os << endOfSection;
}

void writeFailures(llvm::raw_ostream &os, Shown of) {
  const Card &card = of.card;
  if (of.settings.failures.empty())
    return;
  beginSection(os, "failures", "Where it fails",
               "The tokens of the largest divergence at which the adapted model's likeliest token "
               "is not the one of the model with the context.");
  {
    Table table(os, "Largest failures",
                {"the answer so far", "with the context", "with the adapter", "KL"});
    for (auto [failure, text] : llvm::zip(card.failures, of.settings.failures))
      table.row(
          {escaped(text.before), escaped(text.full), escaped(text.adapted), number(failure.kl)});
  }
  if (saysWhatIsTaken(card))
    os << "<p class=\"note\">Of what answers take from the context " << percent(card.taken.share())
       << " are recovered, of all other tokens " << percent(card.others.share()) << ".</p>\n";
  os << endOfSection;
}

void writeDrift(llvm::raw_ostream &os, const Card &card) {
  if (!card.unrelatedTokens)
    return;
  beginSection(os, "drift", "What it changes elsewhere",
               "KL to the model without the context, on text that has nothing to do with it: the "
               "less the better.");
  double most = std::max({card.drift, card.driftOfContext, 1e-30});
  writeBars(
      os,
      {{"the adapter", card.drift / most, number(card.drift), "nats"},
       {"the context itself", card.driftOfContext / most, number(card.driftOfContext), "nats"}},
      "unpatched", "Drift");
  os << endOfSection;
}

void writeCurve(llvm::raw_ostream &os, llvm::ArrayRef<CurvePoint> curve) {
  if (curve.empty())
    return;
  beginSection(os, "curve", "Rank and text",
               "The same context with other ranks and with fewer texts to fit.");
  std::vector<Bar> bars;
  for (const CurvePoint &point : curve)
    bars.push_back({"rank " + std::to_string(point.rank) + ", " + counted(point.tokens, "token"),
                    barLength(point.share),
                    percent(point.share) + " (" + rangeText(point.interval) + ")",
                    counted(point.numbers, "number")});
  writeBars(os, bars, "full", "Share recovered by rank and tokens");
  os << endOfSection;
}

std::string leadOf(Shown of) {
  const Card &card = of.card;
  std::string what = whatIsFitted(of.settings);
  what[0] = llvm::toUpper(what[0]);
  std::string text = "<p class=\"lead\">" + what + " (" + counted(card.numbers, "number") +
                     ") in the place of " + counted(of.settings.contextTokens, "token") +
                     " recovers <b>" + percent(card.all.share()) + "</b> of what the context does";
  text += ", on " + counted(card.all.tokens, "token") + " of " + counted(card.sequences, "text") +
          ". It is approximate. ";
  if (card.dependent.tokens && card.dependent.share() < card.all.share())
    text += "On the tokens that depend on the context most, such as facts, it is worse: " +
            percent(card.dependent.share()) + ". ";
  return text + "The likeliest token is another for the first time after " +
         number(card.agreedAdapted) + " tokens of an answer; without the adapter after " +
         number(card.agreedPlain) + ".</p>";
}

std::string footerOf(Shown of) {
  const CardSettings &settings = of.settings;
  std::string text = "<p>Perplexity of the texts: " + number(of.card.perplexityFull) +
                     " with the context, " + number(of.card.perplexityAdapted) + " adapted, " +
                     number(of.card.perplexityPlain) + " without.</p>\n";
  if (const auto &fit = settings.fit)
    text += "<p>Fitted on " + counted(fit->tokens, "token") + " of " + counted(fit->texts, "text") +
            ", with " + counted(fit->protectedTokens, "token") +
            " of unrelated text protected, in " + number(fit->seconds) + " s; seed " +
            std::to_string(fit->seed) + ".</p>\n";
  return text + "<p>Model <code>" + escaped(settings.model) + "</code>, hash <code>" +
         escaped(StringRef(settings.modelHash).take_front(16)) +
         "</code>; ctxc " CTXC_VERSION ".</p>";
}

} // namespace

void ctxc::writeCardPage(llvm::raw_ostream &os, StringRef command, const Card &card,
                         const CardSettings &settings) {
  Shown of{card, settings};
  std::string figures;
  llvm::raw_string_ostream parts(figures);
  writeShares(parts, of);
  writeExamples(parts, of);
  writeFailures(parts, of);
  writeDrift(parts, card);
  writeCurve(parts, settings.curve);
  writePage(os, {command.str(), "An adapter in the place of a context",
                 "An adapter in the place of a context", leadOf(of), figures, footerOf(of)});
}
