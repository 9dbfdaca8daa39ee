// How much of a context an adapter stands for, beside what else can be done without it: a part of
// the context, chosen or cut, and the mean of exact patches; over ranks and over the length of what
// is fitted.
#include "DistilTrial.h"
#include "Experiments.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;

namespace {

constexpr double keptShares[] = {0.05, 0.15, 0.3, 0.5};
constexpr int64_t rank = 16, patchedTokens = 64;

/// What the experiment's options ask for.
struct Plan {
  TrialSizes sizes;
  int64_t seeds = 1;
  std::vector<ContextEntry> entries;
  std::vector<Method> methods;
};

/// An option's numbers, separated by commas.
Expected<std::vector<int64_t>> numbersOf(const OptionValues &options, StringRef option,
                                         StringRef otherwise, int64_t least, int64_t most) {
  std::vector<int64_t> values;
  llvm::SmallVector<StringRef> words;
  auto given = options.find(option);
  (given == options.end() ? otherwise : StringRef(given->second)).split(words, ',');
  for (StringRef word : words) {
    int64_t value;
    if (word.trim().getAsInteger(10, value) || value < least || value > most)
      return makeError(llvm::Twine(option) + ": found '" + word + "', expected integers from " +
                       llvm::Twine(least) + " to " + llvm::Twine(most) + ", separated by commas");
    values.push_back(value);
  }
  return values;
}

std::vector<Method> methodsFor(llvm::ArrayRef<int64_t> tokens, llvm::ArrayRef<int64_t> ranks,
                               llvm::ArrayRef<int64_t> inCache, int64_t passes) {
  std::vector<Method> methods;
  for (double share : keptShares)
    methods.push_back({"kept", share});
  methods.push_back({"cut", 0.5});
  methods.push_back({"patches", 0, 0, patchedTokens});
  methods.push_back({"closed", 0, rank});
  methods.push_back({"closed", 0.15, rank});
  for (int64_t percent : inCache) {
    if (percent == 0)
      continue;
    methods.push_back({"cache", percent / 100.0});
    methods.push_back({"cache-closed", percent / 100.0, rank});
  }
  for (int64_t count : tokens.drop_back())
    methods.push_back({"closed", 0, rank, count});
  for (int64_t other : ranks)
    if (other != rank)
      methods.push_back({"closed", 0, other});
  if (passes > 0)
    methods.push_back({"refined", 0, rank, 0, passes});
  return methods;
}

Expected<Plan> planOf(const OptionValues &options) {
  Plan plan;
  auto path = options.find("contexts");
  if (path == options.end())
    return makeError("contexts: the experiment distil needs a file of contexts, such as "
                     "examples/08-contexts/contexts.jsonl");
  if (Error error = readContextsFile(path->second, "contexts").moveInto(plan.entries))
    return std::move(error);
  for (const ContextEntry &entry : plan.entries)
    if (entry.prompts.empty() && (entry.text.empty() || entry.heldOut.empty()))
      return makeError("contexts: " + entry.where +
                       ": expected 'prompts', from which the model writes the texts, or both "
                       "'text' and 'held_out'");
  auto tokens = numbersOf(options, "fit-tokens", "250,500,1000", 1, 1 << 24);
  auto ranks = numbersOf(options, "ranks", "1,4,64", 1, 1 << 16);
  auto passes = numbersOf(options, "passes", "3", 0, 1000);
  auto seeds = numbersOf(options, "seeds", "1", 1, 1000);
  auto judged = numbersOf(options, "judge-tokens", "200", 1, 1 << 20);
  auto inCache = numbersOf(options, "keep-cache", "0", 0, 99);
  Error error = Error::success();
  for (auto *each : {&tokens, &ranks, &passes, &seeds, &judged, &inCache})
    error = llvm::joinErrors(std::move(error), each->takeError());
  if (error)
    return std::move(error);
  llvm::sort(*tokens);
  plan.sizes.fitted = tokens->back();
  plan.sizes.judged = judged->front();
  plan.seeds = seeds->front();
  plan.methods = methodsFor(*tokens, *ranks, *inCache, passes->front());
  return plan;
}

class DistilRuns {
public:
  DistilRuns(Lab &lab, Plan plan) : lab(lab), plan(std::move(plan)) {}
  Error run();

private:
  Error run(Model &model, const ContextEntry &entry, int64_t seed);
  Error run(Model &model, const ContextEntry &entry, int64_t seed, const Method &method,
            Trial &trial);
  std::string keyOf(const ContextEntry &entry, int64_t seed, const Method &method) const;

  Lab &lab;
  Plan plan;
};

std::string DistilRuns::keyOf(const ContextEntry &entry, int64_t seed, const Method &method) const {
  return key({{"context", entry.name},
              {"seed", std::to_string(seed)},
              {"method", method.name.str()},
              {"kept", std::to_string(method.kept)},
              {"rank", std::to_string(method.rank)},
              {"tokens", std::to_string(method.tokens)}});
}

Error DistilRuns::run(Model &model, const ContextEntry &entry, int64_t seed, const Method &method,
                      Trial &trial) {
  auto made = attempt(model, trial, method);
  if (!made)
    return made.takeError();
  if (!*made)
    return Error::success();
  const Card &card = (*made)->card;
  Object record{
      {"context", entry.name},
      {"contextTokens", int64_t(trial.context.context.size())},
      {"seed", seed},
      {"method", method.name},
      {"kept", method.kept},
      {"rank", method.rank},
      {"asked", method.tokens},
      {"passes", method.passes},
      {"tokens", (*made)->tokens},
      {"front", (*made)->front},
      {"share", number(card.all.share())},
      {"interval", Array{number(card.shareInterval.low), number(card.shareInterval.high)}},
      {"judgedTokens", card.all.tokens},
      {"effect", number(card.all.klPlain)},
      {"sameToken", number(card.all.agreementAdapted)},
      {"right", Array{card.rightFull, card.rightAdapted, card.rightPlain}},
      {"numbers", card.numbers},
      {"seconds", (*made)->seconds},
      {"processorSeconds", (*made)->processorSeconds}};
  if (card.dependent.tokens) {
    record["dependent"] = number(card.dependent.share());
    record["dependentTokens"] = card.dependent.tokens;
  }
  if (card.unrelatedTokens) {
    record["drift"] = number(card.drift);
    record["driftOfContext"] = number(card.driftOfContext);
  }
  return lab.records.add(keyOf(entry, seed, method), std::move(record));
}

/// The texts of a seed are the same whenever they are written, so that a run that was interrupted
/// writes them again.
Error DistilRuns::run(Model &model, const ContextEntry &entry, int64_t seed) {
  lab.progress.begin(entry.name);
  std::optional<Trial> trial;
  for (const Method &method : plan.methods) {
    bool isThere = lab.records.has(keyOf(entry, seed, method));
    if (!isThere && !trial) {
      auto made = makeTrial(model, entry, plan.sizes, seed);
      if (!made)
        return makeError(entry.name + ": " + llvm::toString(made.takeError()));
      trial.emplace(std::move(*made));
    }
    if (!isThere)
      if (Error error = run(model, entry, seed, method, *trial))
        return makeError(entry.name + ", " + method.name + ": " + llvm::toString(std::move(error)));
    lab.progress.advance(1, isThere);
  }
  return Error::success();
}

Error DistilRuns::run() {
  lab.progress.expect(plan.entries.size() * plan.seeds * plan.methods.size());
  Setting setting;
  setting.dtype = "f32";
  auto model = lab.openModel(setting);
  if (!model)
    return model.takeError();
  for (int64_t seed = 0; seed < plan.seeds; ++seed)
    for (const ContextEntry &entry : plan.entries)
      if (Error error = run(**model, entry, seed))
        return error;
  return Error::success();
}

Error checkDistil(const OptionValues &options) { return planOf(options).takeError(); }

Error runDistil(Lab &lab) {
  auto plan = planOf(lab.options);
  if (!plan)
    return plan.takeError();
  return DistilRuns(lab, std::move(*plan)).run();
}

} // namespace

Experiment experiments::distilExperiment() {
  Experiment experiment;
  experiment.name = "distil";
  experiment.paper = "not in the paper";
  experiment.summary =
      "how much of a context an adapter recovers (ctxc distil), beside kept tokens,\n"
      "half of the context and the mean of its patches; over ranks and tokens";
  experiment.takesPrompts = false;
  experiment.generate = 1;
  experiment.dtypes = {"f32"};
  experiment.updates = {"least"};
  experiment.options = {
      {"contexts", "FILE", "distil: JSON lines, as those of `ctxc distil`; each with 'prompts'"},
      {"seeds", "N", "distil: of the texts that the model writes, so many; default 1"},
      {"fit-tokens", "COUNTS", "distil: tokens of text to fit; default 250,500,1000"},
      {"judge-tokens", "N", "distil: of answers that judge, where no 'held_out' does; default 200"},
      {"keep-cache", "PERCENTS",
       "distil: also keep so much of the context in the cache; default 0: none"},
      {"ranks", "RANKS", "distil: beside 16; default 1,4,64"},
      {"passes", "N", "distil: of the refinement; default 3, 0: none"}};
  experiment.check = checkDistil;
  experiment.run = runDistil;
  return experiment;
}
