#include "Objective.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Expected;
using llvm::StringRef;

/// Of the context's own drift: what a safe adapter may have.
static constexpr double safeDrift = 0.25;

Expected<DistilObjective> driver::objectiveOf(const Arguments &arguments) {
  StringRef name = arguments.get("--objective", "recover");
  auto objective = llvm::StringSwitch<std::optional<DistilObjective>>(name)
                       .Case("recover", DistilObjective::Recover)
                       .Case("safe", DistilObjective::Safe)
                       .Default(std::nullopt);
  if (!objective)
    return makeError("--objective: found '" + name + "', expected recover or safe");
  return *objective;
}

OptionSpec driver::objectiveOption() {
  return {
      "--objective", "NAME",
      "recover (default): recover as much of the context's effect as possible; safe: as much as\n"
      "possible while unrelated text drifts by at most a quarter of the context's own effect"};
}

namespace {

/// Tries one protection after the other.
class SafeFit {
public:
  SafeFit(Model &model, DistilRequest &request, const EvaluateRequest &about)
      : model(model), request(request), about(about) {}
  Expected<Fitted> run();

private:
  /// Whether the drift is bounded then; the first such fit, or a better one, is kept.
  Expected<bool> tryWith(double protection);

  Model &model;
  DistilRequest &request;
  EvaluateRequest about;
  Fitted best;
  std::vector<TradeOff> tried;
};

} // namespace

Expected<bool> SafeFit::tryWith(double protection) {
  request.protection = protection;
  auto made = model.distil(request);
  if (!made)
    return made.takeError();
  auto card = model.evaluate(made->adapter, about);
  if (!card)
    return card.takeError();
  const double drift = card->drift / card->driftOfContext;
  tried.push_back({protection, card->all.share(), drift});
  if (!(drift <= safeDrift))
    return false;
  best.made = std::move(*made);
  return true;
}

Expected<Fitted> SafeFit::run() {
  std::vector<TextSequence> fitted;
  about.unrelated.clear();
  for (auto [i, text] : llvm::enumerate(request.unrelated))
    (i % 2 ? about.unrelated : fitted).push_back(text);
  if (about.unrelated.empty())
    return makeError(
        "--objective: 'safe' chooses by the drift on unrelated text; expected at least "
        "four texts in --unrelated");
  request.unrelated = std::move(fitted);
  double bounded = 0;
  const double first = request.protection > 0 ? request.protection : 0.3;
  for (double protection = first; bounded == 0; protection *= 3) {
    auto holds = tryWith(protection);
    if (!holds)
      return holds.takeError();
    if (*holds)
      bounded = protection;
    else if (tried.size() == 6)
      return makeError(
          llvm::formatv("--objective: with a protection of {0:F1} unrelated text still "
                        "drifts by {1:F2} of what the context itself does there, above "
                        "{2:F2}; expected more texts in --unrelated, or 'recover'",
                        protection, tried.back().drift, safeDrift)
              .str());
  }
  if (tried.size() > 1) { // between the last that was too little and the first that was enough
    const double between = bounded / std::sqrt(3);
    auto holds = tryWith(between);
    if (!holds)
      return holds.takeError();
    if (*holds)
      bounded = between;
  }
  request.protection = bounded;
  llvm::sort(tried,
             [](const TradeOff &a, const TradeOff &b) { return a.protection < b.protection; });
  best.tried = std::move(tried);
  return std::move(best);
}

Expected<Fitted> driver::fitFor(DistilObjective objective, Model &model, DistilRequest &request,
                                const EvaluateRequest &about) {
  if (objective == DistilObjective::Safe)
    return SafeFit(model, request, about).run();
  auto made = model.distil(request);
  if (!made)
    return made.takeError();
  return Fitted{std::move(*made), {}};
}
