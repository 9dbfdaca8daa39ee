#include "ctxc/Report/CardReport.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;
using llvm::format;

static void writeGroup(llvm::raw_ostream &os, const char *name, const TokenGroup &group) {
  if (!group.tokens)
    return;
  os << format("  %-24s%7lld%10.3f%10.3f%10.1f %%%8.0f %%%6.0f %%\n", name,
               static_cast<long long>(group.tokens), group.klPlain, group.klAdapted,
               100 * group.share(), 100 * group.agreementPlain, 100 * group.agreementAdapted);
}

std::optional<int64_t> ctxc::requestsToPay(const Card &card, const CardSettings &settings) {
  if (!settings.fit || !(card.secondsSaved() > 0))
    return std::nullopt;
  return std::ceil((settings.fit->seconds + settings.fit->sampleSeconds) / card.secondsSaved());
}

bool ctxc::saysWhatIsTaken(const Card &card) {
  return std::min(card.taken.tokens, card.others.tokens) >= 4;
}

/// `text` in quotes and on one line.
static std::string quoted(llvm::StringRef text) {
  std::string line = "\"";
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (auto [i, part] : llvm::enumerate(lines))
    line += (i ? "\\n" : "") + printableLine(part);
  return line + "\"";
}

static void writeFailures(llvm::raw_ostream &os, const Card &card, const CardSettings &settings) {
  if (!card.worst && card.failures.empty())
    return;
  os << "where it fails\n";
  if (saysWhatIsTaken(card))
    os << "  on " << counted(card.taken.tokens, "token")
       << format(" that answers take from the context %.1f %% are recovered, on ",
                 100 * card.taken.share())
       << counted(card.others.tokens, "other") << format(" %.1f %%\n", 100 * card.others.share());
  if (card.worst) {
    os << format("  worst: %.1f %% of text ", 100 * card.worst->share) << card.worst->text + 1;
    if (!settings.worstText.empty())
      os << ", " << quoted(settings.worstText);
    os << "\n";
  }
  for (auto [failure, text] : llvm::zip(card.failures, settings.failures))
    os << "  after " << quoted(text.before) << " the model with the context has "
       << quoted(text.full) << ", the adapted one " << quoted(text.adapted)
       << format(" (KL %.2f)\n", failure.kl);
}

/// Three questions, each answered with the context, with the adapter, and without.
static void writeExamples(llvm::raw_ostream &os, llvm::ArrayRef<ExampleText> examples) {
  if (!examples.empty())
    os << "answers side by side (the likeliest ones)\n";
  for (const ExampleText &example : examples.take_front(3)) {
    os << "  " << quoted(example.prompt) << "\n";
    for (auto [name, answer] :
         {std::pair("with the context", &example.full), std::pair("adapted", &example.adapted),
          std::pair("without", &example.plain)})
      os << llvm::formatv("    {0,-17} {1}\n", name, quoted(answer->same + answer->other));
  }
}

static void writeSavings(llvm::raw_ostream &os, const Card &card, const CardSettings &settings) {
  os << "; saves " << counted(card.tokensSaved, "token") << " of each request";
  if (!(card.secondsSaved() > 0)) {
    os << ", and no time\n";
    return;
  }
  os << format(", and the %.3f s of reading them\n", card.secondsSaved());
  if (auto requests = requestsToPay(card, settings))
    os << format("the %.1f s of making it are saved after ",
                 settings.fit->seconds + settings.fit->sampleSeconds)
       << counted(*requests, "request") << "\n";
}

void ctxc::writeFitted(llvm::raw_ostream &os, const CardSettings::Fit &fit) {
  os << "fitted on " << counted(fit.tokens, "token") << " of " << counted(fit.texts, "text") << " ("
     << fit.protectedTokens << " of unrelated text) in " << format("%.1f s", fit.seconds) << "\n";
}

void ctxc::writeRefined(llvm::raw_ostream &os, const CardSettings::Fit &fit) {
  if (fit.mostPasses)
    os << "refined by " << fit.passes << " of " << counted(fit.mostPasses, "pass")
       << " of gradient: "
       << format("KL %.3f, then %.3f", fit.divergenceBefore, fit.divergenceAfter)
       << (fit.choosingTexts
               ? " on " + counted(fit.choosingTexts, "text") + " that chose their number"
               : " on the fitted text")
       << (fit.dropsPasses
               ? "; dropped, since the closed form recovers more of the text that judges"
               : "")
       << "\n";
}

void ctxc::writeSampled(llvm::raw_ostream &os, const CardSettings::Fit &fit) {
  if (fit.sampledTokens == 0)
    return;
  os << "the model wrote " << counted(fit.sampledTokens, "token") << " in "
     << format("%.1f s", fit.sampleSeconds);
  if (fit.writtenPrompts > 0)
    os << ", also after " << counted(fit.writtenPrompts, "prompt") << " of its own";
  os << "\n";
}

std::string ctxc::whatIsFitted(const CardSettings &settings) {
  return settings.entries ? std::to_string(settings.entries) + " virtual " +
                                (settings.entries == 1 ? "entry" : "entries") + " of the cache"
                          : "an adapter of rank " + std::to_string(settings.rank);
}

static void writeTriedEntries(llvm::raw_ostream &os, const CardSettings &settings) {
  if (settings.entriesTried.empty())
    return;
  os << "recovered on texts that were left out:";
  llvm::ListSeparator separator(",");
  for (const EntriesTried &tried : settings.entriesTried)
    os << separator << " " << tried.count << " entries" << format(" %.1f %%", 100 * tried.share);
  os << "\n";
}

void ctxc::writeCard(llvm::raw_ostream &os, const Card &card, const CardSettings &settings) {
  os << "approximate: " << whatIsFitted(settings) << " in the place of "
     << counted(settings.contextTokens, "token") << " of context\n";
  if (!settings.whyWeights.empty())
    os << "weights change, and no entries of the cache stand in its place: " << settings.whyWeights
       << "\n";
  if (!settings.seen.empty())
    os << "texts see what the model without the adapter keeps of " << settings.seen.size()
       << " of these tokens after it has read all of them\n";
  if (settings.strength != 1)
    os << llvm::formatv("strength: {0} of what was fitted\n", settings.strength);
  if (settings.fit)
    writeFitted(os, *settings.fit);
  if (!settings.objective.empty())
    os << "objective: " << settings.objective << "\n";
  if (settings.fit)
    writeRefined(os, *settings.fit);
  if (settings.fit)
    writeSampled(os, *settings.fit);
  writeTriedEntries(os, settings);
  os << "judged on " << counted(card.all.tokens, "token") << " of "
     << counted(card.sequences, "text")
     << (settings.fit && settings.fit->splitsText
             ? ", held out by seed " + std::to_string(settings.fit->seed)
             : "")
     << "\n\n"
     << format("share of the context's effect recovered: %.1f %% (95 %%: %.1f to %.1f)\n\n",
               100 * card.all.share(), 100 * card.shareInterval.low, 100 * card.shareInterval.high)
     << (settings.keptShare ? llvm::formatv("the kept tokens alone recover {0:F1} %\n\n",
                                            100 * *settings.keptShare)
                                  .str()
                            : "")
     << "                           tokens  KL to the full model  recovered  same likeliest token\n"
     << "                                    without   adapted             without  adapted\n";
  writeGroup(os, "all", card.all);
  writeGroup(os, "most dependent (> 1 nat)", card.dependent);
  for (const auto &[turn, group] : card.turns)
    writeGroup(os, ("turn " + std::to_string(turn)).c_str(), group);
  os << format("\nperplexity of the text: %.2f with the context, %.2f adapted, %.2f without\n",
               card.perplexityFull, card.perplexityAdapted, card.perplexityPlain)
     << format("likeliest token is the text's own: %.0f %% with the context, %.0f %% adapted, "
               "%.0f %% without\n",
               100 * card.rightFull, 100 * card.rightAdapted, 100 * card.rightPlain)
     << format("tokens before the first other choice: %.1f adapted, %.1f without\n",
               card.agreedAdapted, card.agreedPlain);
  if (card.unrelatedTokens)
    os << format("drift on unrelated text: KL %.3f adapted; %.3f with the context itself\n",
                 card.drift, card.driftOfContext);
  if (!settings.tradeOff.empty())
    os << "\nprotection  recovered  drift, of the context's own\n";
  for (const TradeOff &point : settings.tradeOff)
    os << format("%10.2f%9.1f %%%7.2f\n", point.protection, 100 * point.share, point.drift);
  if (!settings.tradeOff.empty())
    os << "\n";
  if (!settings.curve.empty())
    os << "\n    rank   tokens  recovered\n";
  for (const CurvePoint &point : settings.curve)
    os << format("%8lld%9lld%9.1f %% (95 %%: %.1f to %.1f)\n", static_cast<long long>(point.rank),
                 static_cast<long long>(point.tokens), 100 * point.share, 100 * point.interval.low,
                 100 * point.interval.high);
  if (!settings.curve.empty())
    os << "\n";
  writeFailures(os, card, settings);
  writeExamples(os, settings.examples);
  os << "size: " << counted(card.numbers, "number");
  writeSavings(os, card, settings);
}

static llvm::json::Value groupJson(const TokenGroup &group) {
  return llvm::json::Object{{"tokens", group.tokens},
                            {"kl_without", group.klPlain},
                            {"kl_adapted", group.klAdapted},
                            {"same_token_without", group.agreementPlain},
                            {"same_token_adapted", group.agreementAdapted}};
}

static llvm::json::Value curveJson(llvm::ArrayRef<CurvePoint> curve) {
  llvm::json::Array points;
  for (const CurvePoint &point : curve)
    points.push_back(llvm::json::Object{
        {"rank", point.rank},
        {"tokens", point.tokens},
        {"numbers", point.numbers},
        {"share_recovered", point.share},
        {"share_interval_95", llvm::json::Array{point.interval.low, point.interval.high}}});
  return points;
}

static llvm::json::Value turnsJson(llvm::ArrayRef<std::pair<int64_t, TokenGroup>> turns) {
  llvm::json::Array all;
  for (const auto &[turn, group] : turns) {
    llvm::json::Value json = groupJson(group);
    (*json.getAsObject())["turn"] = turn;
    (*json.getAsObject())["share_recovered"] = group.share();
    all.push_back(std::move(json));
  }
  return all;
}

static llvm::json::Value tradeOffJson(llvm::ArrayRef<TradeOff> points) {
  llvm::json::Array all;
  for (const TradeOff &point : points)
    all.push_back(llvm::json::Object{{"protection", point.protection},
                                     {"share_recovered", point.share},
                                     {"drift_of_contexts_own", point.drift}});
  return all;
}

static llvm::json::Value examplesJson(llvm::ArrayRef<ExampleText> examples) {
  llvm::json::Array all;
  auto whole = [](const AnswerText &answer) {
    return llvm::json::fixUTF8(answer.same + answer.other);
  };
  for (const ExampleText &example : examples)
    all.push_back(llvm::json::Object{{"prompt", llvm::json::fixUTF8(example.prompt)},
                                     {"full", whole(example.full)},
                                     {"adapted", whole(example.adapted)},
                                     {"without", whole(example.plain)}});
  return all;
}

static llvm::json::Value failuresJson(const Card &card, const CardSettings &settings) {
  llvm::json::Array all;
  for (auto [i, failure] : llvm::enumerate(card.failures)) {
    llvm::json::Object one{{"text", int64_t(failure.text)},
                           {"at", failure.at},
                           {"full", failure.full},
                           {"adapted", failure.adapted},
                           {"kl", failure.kl}};
    if (i < settings.failures.size()) {
      const FailureText &text = settings.failures[i];
      one["before_text"] = llvm::json::fixUTF8(text.before);
      one["full_text"] = llvm::json::fixUTF8(text.full);
      one["adapted_text"] = llvm::json::fixUTF8(text.adapted);
    }
    all.push_back(std::move(one));
  }
  return all;
}

static void addFailuresJson(llvm::json::Object &json, const Card &card,
                            const CardSettings &settings) {
  json["taken_from_context"] = groupJson(card.taken);
  json["not_taken_from_context"] = groupJson(card.others);
  if (card.worst)
    json["worst_text"] = llvm::json::Object{{"text", int64_t(card.worst->text)},
                                            {"share_recovered", card.worst->share}};
  if (!card.failures.empty())
    json["failures"] = failuresJson(card, settings);
}

llvm::json::Value ctxc::fitJson(const CardSettings::Fit &fit) {
  return llvm::json::Object{{"texts", fit.texts},
                            {"tokens", fit.tokens},
                            {"protected_tokens", fit.protectedTokens},
                            {"seed", int64_t(fit.seed)},
                            {"held_out_of_text", fit.splitsText},
                            {"passes", fit.passes},
                            {"kl_before_passes", fit.divergenceBefore},
                            {"kl_after_passes", fit.divergenceAfter},
                            {"choosing_texts", fit.choosingTexts},
                            {"sampled_tokens", fit.sampledTokens},
                            {"written_prompts", fit.writtenPrompts},
                            {"prompts", fit.prompts},
                            {"drops_passes", fit.dropsPasses},
                            {"sample_seconds", fit.sampleSeconds},
                            {"seconds", fit.seconds},
                            {"processor_seconds", fit.processorSeconds}};
}

llvm::json::Value ctxc::cardJson(const Card &card, const CardSettings &settings) {
  llvm::json::Object json{
      {"format", "ctxc-card"},
      {"approximate", true},
      {"model", settings.model},
      {"model_hash", settings.modelHash},
      {"context_tokens", settings.contextTokens},
      {"prefix", llvm::json::Array(settings.prefix)},
      {"rank", settings.rank},
      {"share_recovered", card.all.share()},
      {"share_interval_95", llvm::json::Array{card.shareInterval.low, card.shareInterval.high}},
      {"bootstrap_seed", int64_t(settings.bootstrapSeed)},
      {"texts", card.sequences},
      {"all", groupJson(card.all)},
      {"most_dependent", groupJson(card.dependent)},
      {"perplexity", llvm::json::Object{{"full", card.perplexityFull},
                                        {"adapted", card.perplexityAdapted},
                                        {"without", card.perplexityPlain}}},
      {"own_token", llvm::json::Object{{"full", card.rightFull},
                                       {"adapted", card.rightAdapted},
                                       {"without", card.rightPlain}}},
      {"tokens_before_first_other",
       llvm::json::Object{{"adapted", card.agreedAdapted}, {"without", card.agreedPlain}}},
      {"numbers", card.numbers},
      {"tokens_saved", card.tokensSaved}};
  if (!settings.seen.empty())
    json["seen"] = llvm::json::Array(settings.seen);
  if (settings.strength != 1)
    json["strength"] = settings.strength;
  json["seconds_of_context"] = card.secondsOfContext;
  json["seconds_saved"] = card.secondsSaved();
  if (auto requests = requestsToPay(card, settings))
    json["requests_to_pay"] = *requests;
  addFailuresJson(json, card, settings);
  if (card.unrelatedTokens)
    json["drift"] = llvm::json::Object{{"tokens", card.unrelatedTokens},
                                       {"adapted", card.drift},
                                       {"context", card.driftOfContext}};
  if (settings.entries)
    json["entries"] = settings.entries;
  if (!settings.whyWeights.empty())
    json["why_weights"] = settings.whyWeights;
  if (!settings.entriesTried.empty()) {
    llvm::json::Array tried;
    for (const EntriesTried &each : settings.entriesTried)
      tried.push_back(llvm::json::Object{{"entries", each.count}, {"share", each.share}});
    json["entries_tried"] = std::move(tried);
  }
  if (!card.turns.empty())
    json["turns"] = turnsJson(card.turns);
  if (!settings.objective.empty())
    json["objective"] = settings.objective;
  if (!settings.tradeOff.empty())
    json["trade_off"] = tradeOffJson(settings.tradeOff);
  if (!settings.curve.empty())
    json["curve"] = curveJson(settings.curve);
  if (!settings.examples.empty())
    json["examples"] = examplesJson(settings.examples);
  if (settings.keptShare)
    json["share_of_kept_tokens_alone"] = *settings.keptShare;
  if (const auto &fit = settings.fit)
    json["fit"] = fitJson(*fit);
  return json;
}
