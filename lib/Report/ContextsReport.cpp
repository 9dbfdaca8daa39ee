#include "ctxc/Report/ContextsReport.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using llvm::format;
using Cards = llvm::ArrayRef<ContextCard>;

static double meanOf(Cards cards, llvm::function_ref<double(const ContextCard &)> value) {
  double sum = 0;
  for (const ContextCard &each : cards)
    sum += value(each);
  return sum / cards.size();
}

/// `text` with blanks behind it, up to `width` characters; UTF-8 is not cut.
static std::string padded(llvm::StringRef text, size_t width) {
  std::string shown = printableLine(text);
  return shown + std::string(width - std::min(width, shown.size()), ' ');
}

static void writeRow(llvm::raw_ostream &os, const ContextCard &each, size_t width) {
  os << "  " << padded(each.name, width)
     << format("%9lld%8lld%10.1f %%", static_cast<long long>(each.settings.contextTokens),
               static_cast<long long>(each.card.all.tokens), 100 * each.card.all.share())
     << llvm::left_justify(llvm::formatv(" ({0:F0} to {1:F0})", 100 * each.card.shareInterval.low,
                                         100 * each.card.shareInterval.high)
                               .str(),
                           14)
     << format("%9.1f %%%8.1f", 100 * each.own.all.share(), 100 * each.lost());
  if (each.card.dependent.tokens)
    os << format("%14.1f %%%9.1f %%", 100 * each.card.dependent.share(),
                 100 * each.own.dependent.share());
  os << "\n";
}

void ctxc::writeContexts(llvm::raw_ostream &os, Cards cards, const CardSettings::Fit &fit) {
  const Card &first = cards.front().card;
  os << "approximate: an adapter of rank " << cards.front().settings.rank << " in the place of "
     << counted(cards.size(), "context") << ", each in front of its own texts\n";
  if (double strength = cards.front().settings.strength; strength != 1)
    os << llvm::formatv("strength: {0} of what was fitted\n", strength);
  writeFitted(os, fit);
  writeRefined(os, fit);
  writeSampled(os, fit);
  size_t width = 7;
  for (const ContextCard &each : cards)
    width = std::max(width, printableLine(each.name).size());
  os << "\n  " << padded("context", width)
     << "   tokens  judged   recovered  (95 %)       by an adapter   loses  most dependent  by its "
        "own\n"
     << "  " << padded("", width) << "                                            of its own\n";
  for (const ContextCard &each : cards)
    writeRow(os, each, width);
  os << "  " << padded("mean", width)
     << format("%27.1f %%%23.1f %%%8.1f\n",
               100 * meanOf(cards, [](const ContextCard &c) { return c.card.all.share(); }),
               100 * meanOf(cards, [](const ContextCard &c) { return c.own.all.share(); }),
               100 * meanOf(cards, [](const ContextCard &c) { return c.lost(); }));
  if (first.unrelatedTokens)
    os << format("\ndrift on unrelated text: KL %.3f adapted; %.3f by adapters of their own, "
                 "%.3f with the contexts themselves (means)\n",
                 first.drift, meanOf(cards, [](const ContextCard &c) { return c.own.drift; }),
                 meanOf(cards, [](const ContextCard &c) { return c.card.driftOfContext; }));
  os << "size: " << counted(first.numbers, "number") << "; adapters of their own have "
     << llvm::formatv("{0}", int64_t(cards.size() * meanOf(cards,
                                                           [](const ContextCard &c) {
                                                             return double(c.own.numbers);
                                                           })))
     << "\n";
}

llvm::json::Value ctxc::contextsJson(Cards cards, const CardSettings::Fit &fit) {
  const CardSettings &settings = cards.front().settings;
  llvm::json::Array contexts;
  for (const ContextCard &each : cards) {
    llvm::json::Value value = cardJson(each.card, each.settings);
    llvm::json::Object &json = *value.getAsObject();
    for (const char *common : {"format", "approximate", "model", "model_hash", "prefix", "rank"})
      json.erase(common);
    json["name"] = llvm::json::fixUTF8(each.name);
    json["share_by_its_own_adapter"] = each.own.all.share();
    json["share_lost"] = each.lost();
    if (each.own.dependent.tokens)
      json["most_dependent_by_its_own_adapter"] = each.own.dependent.share();
    if (each.own.unrelatedTokens)
      json["drift_by_its_own_adapter"] = each.own.drift;
    contexts.push_back(std::move(value));
  }
  return llvm::json::Object{{"format", "ctxc-card"},
                            {"approximate", true},
                            {"model", settings.model},
                            {"model_hash", settings.modelHash},
                            {"prefix", llvm::json::Array(settings.prefix)},
                            {"rank", settings.rank},
                            {"strength", settings.strength},
                            {"numbers", cards.front().card.numbers},
                            {"contexts", std::move(contexts)},
                            {"fit", fitJson(fit)}};
}
