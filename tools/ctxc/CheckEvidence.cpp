#include "CheckEvidence.h"
#include "Commands.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/Format.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

static OptionSpec optionWith(StringRef name, StringRef value, StringRef help) {
  OptionSpec option;
  option.name = name;
  option.value = value;
  option.help = help;
  return option;
}

std::vector<OptionSpec> driver::evidenceOptions() {
  OptionSpec attempt = optionWith(
      "--try", "SEED",
      "run each plan in the reference executor, on random activations and on the model's\n"
      "weights, or on random weights if it has none; SEED is 1 by default");
  OptionSpec witness =
      optionWith("--witness", "FILE",
                 "for each rejected block, search for a numeric counterexample: weights and a\n"
                 "context for which no patch is exact; if FILE is given, write it there (JSON)");
  attempt.valueOptional = witness.valueOptional = true;
  witness.path = PathUse::Output;
  OptionSpec replay =
      optionWith("--replay", "FILE", "in place of MODEL: evaluate the counterexamples of FILE");
  replay.insteadOfPositionals = true;
  replay.path = PathUse::Input;
  return {attempt, witness, replay};
}

//===----------------------------------------------------------------------===//
// Gathering evidence
//===----------------------------------------------------------------------===//

llvm::Error CheckEvidence::tryPlans(const Arguments &arguments, Model &model,
                                    llvm::ArrayRef<VerdictGroup> groups) {
  std::optional<StringRef> text = arguments.get("--try");
  if (!text)
    return llvm::Error::success();
  if (!text->empty() && text->getAsInteger(10, seed))
    return makeError("--try: found '" + *text + "', expected a seed, a number from 0 on");

  Weights *own = nullptr;
  if (model.checkpoint()) {
    llvm::Expected<Weights &> stored = model.weights();
    if (!stored)
      return stored.takeError();
    own = &*stored;
  }
  weights = own ? "the model's weights" : "random weights";
  for (auto [group, result] : llvm::zip_equal(groups, trials)) {
    if (!group.verdict->isSuccess())
      continue;
    for (const VerdictCase &one : group.cases) {
      TrialOptions options;
      options.seed = seed;
      options.weights = own;
      options.layer = one.options->layer;
      options.inputsAreSources = one.options->inputsAreSources;
      options.update = one.options->update;
      auto trial = tryPlan(group.block, group.verdict->plan, options);
      result.push_back(
          {one.layers, trial ? *trial : Trial(), trial ? "" : llvm::toString(trial.takeError())});
    }
  }
  return llvm::Error::success();
}

/// Searches for a patch, where neither a plan nor a counterexample is known.
static std::optional<PatchSearch> searchBlindly(xf::BlockOp block, const PlanOptions &planning) {
  SampleOptions options;
  options.inputsAreSources = planning.inputsAreSources;
  auto found = searchPatch(block, planning, randomSample(block, options),
                           *randomWeights(options.seed), planning.layer);
  if (found)
    return *found;
  llvm::consumeError(found.takeError()); // too large to search
  return std::nullopt;
}

llvm::Expected<CheckEvidence::CaseWitness> CheckEvidence::findWitness(const VerdictGroup &group,
                                                                      const VerdictCase &one) {
  xf::BlockOp block = group.block;
  CaseWitness result;
  result.layers = one.layers;
  WitnessOptions how;
  if (group.verdict->kind == VerdictKind::Rejected)
    how.rule = group.verdict->causes.front().rule;
  auto witness = ctxc::findWitness(block, *one.options, one.options->layer, how);
  if (!witness) {
    result.failure = llvm::toString(witness.takeError());
    return result;
  }
  if (!*witness) {
    result.search = searchBlindly(block, *one.options);
    return result;
  }
  (*witness)->why = group.verdict->causes.front().message;
  auto replay = replayWitness(**witness, *block.getContext());
  if (!replay)
    return replay.takeError();
  result.witness = std::move(*witness);
  result.replay = *replay;
  return result;
}

llvm::Error CheckEvidence::findWitnesses(const Arguments &arguments,
                                         llvm::ArrayRef<VerdictGroup> groups) {
  std::optional<StringRef> path = arguments.get("--witness");
  if (!path)
    return llvm::Error::success();
  std::vector<Witness> found;
  for (auto [group, result] : llvm::zip_equal(groups, witnesses)) {
    if (group.verdict->isSuccess())
      continue;
    for (const VerdictCase &one : group.cases) {
      auto witness = findWitness(group, one);
      if (!witness)
        return witness.takeError();
      if (witness->witness)
        found.push_back(*witness->witness);
      result.push_back(std::move(*witness));
    }
  }
  return path->empty() ? llvm::Error::success() : writeWitnesses(found, *path);
}

llvm::Expected<CheckEvidence> CheckEvidence::gather(const Arguments &arguments, Model &model,
                                                    llvm::ArrayRef<VerdictGroup> groups) {
  CheckEvidence evidence;
  evidence.trials.resize(groups.size());
  evidence.witnesses.resize(groups.size());
  if (llvm::Error error = evidence.tryPlans(arguments, model, groups))
    return std::move(error);
  if (llvm::Error error = evidence.findWitnesses(arguments, groups))
    return std::move(error);
  return evidence;
}

bool CheckEvidence::isGood() const {
  return llvm::all_of(trials, [](const auto &cases) {
    return llvm::all_of(cases,
                        [](const CaseTrial &t) { return t.failure.empty() && t.trial.isExact(); });
  });
}

double CheckEvidence::CaseTrial::badness() const {
  if (!failure.empty())
    return HUGE_VAL;
  return trial.isExact() ? trial.error / trial.tolerance() : 1 + trial.error;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

static llvm::json::Object witnessJson(const Witness &witness, const Replay &replay) {
  llvm::json::Object object{{"seed", int64_t(witness.seed)},
                            {"scaled", witness.scaled},
                            {"change", witness.change()},
                            {"target", witness.target},
                            {"limit", witness.limit},
                            {"leastError", witness.leastError},
                            {"confirmed", replay.confirms(witness)}};
  if (replay.search)
    object["search"] = llvm::json::Object{{"error", replay.search->error},
                                          {"numbers", replay.search->numbers},
                                          {"evaluations", replay.search->evaluations}};
  return object;
}

void CheckEvidence::addTo(llvm::json::Value &report) const {
  llvm::json::Array *groups = report.getAsObject()->getArray("groups");
  auto addLayers = [](llvm::json::Object &object, const auto &cases, const auto &one) {
    if (cases.size() > 1)
      object["layers"] = llvm::json::Array(one.layers);
  };
  for (auto [group, ofTrial, ofWitness] : llvm::zip_equal(*groups, trials, witnesses)) {
    llvm::json::Object &report = *group.getAsObject();
    if (!ofTrial.empty()) {
      const CaseTrial &worst =
          *llvm::max_element(ofTrial, [](auto &a, auto &b) { return a.badness() < b.badness(); });
      llvm::json::Object object = trialJson(worst.trial);
      if (!worst.failure.empty())
        object = llvm::json::Object{{"failure", worst.failure}};
      object["seed"] = int64_t(seed);
      addLayers(object, ofTrial, worst);
      report.insert({"trial", std::move(object)});
    }
    if (ofWitness.empty())
      continue;
    const CaseWitness &weakest = *llvm::min_element(
        ofWitness, [](auto &a, auto &b) { return a.leastError() < b.leastError(); });
    llvm::json::Value value = nullptr;
    if (weakest.witness) {
      llvm::json::Object object = witnessJson(*weakest.witness, weakest.replay);
      addLayers(object, ofWitness, weakest);
      value = std::move(object);
    }
    report.insert({"witness", std::move(value)});
  }
}

static void printHead(llvm::raw_ostream &os, const VerdictGroup &group,
                      llvm::ArrayRef<unsigned> layers) {
  xf::BlockOp block = group.block;
  os << "  block '" << block.getSymName() << "'";
  if (!group.ops.empty())
    os << ", layer " << layers.front();
  os << ": ";
}

void CheckEvidence::printTrials(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const {
  if (llvm::all_of(trials, [](const auto &cases) { return cases.empty(); }))
    return;
  os << "\ntried on " << weights << ", seed " << seed << ":\n";
  for (auto [group, cases] : llvm::zip_equal(groups, trials))
    for (const CaseTrial &one : cases) {
      printHead(os, group, one.layers);
      if (!one.failure.empty())
        os << "no numbers: " << one.failure << "\n";
      else
        os << (one.trial.isExact() ? "exact" : "NOT EXACT: " + one.trial.whyNotExact()) << "\n    "
           << trialText(one.trial) << "\n";
    }
}

/// Prints the lines of a witness below its heading.
static void printWitness(llvm::raw_ostream &os, const Witness &witness, const Replay &replay) {
  os << llvm::format("no patch comes nearer than %.4g", witness.leastError)
     << (replay.confirms(witness) ? "\n" : ", which is NOT CONFIRMED\n") << "    "
     << llvm::format("the context moves the output by %.4g, to %.4g along the witness's direction; "
                     "patches, up to %.4g",
                     witness.change(), witness.target, witness.limit)
     << "\n    random weights and activations, seed " << witness.seed;
  if (!witness.scaled.empty())
    os << ", " << witness.scaled;
  if (!witness.sizes.empty())
    os << "\n    the block in smaller sizes: " << witness.sizes;
  os << "\n    ";
  if (!replay.search)
    os << "too many numbers to search for a patch\n";
  else if (replay.search->numbers == 0)
    os << "there is no number that a patch may change\n";
  else
    os << "a search over " << replay.search->numbers
       << llvm::format(" numbers of the parameters came as near as %.4g\n", replay.search->error);
}

void CheckEvidence::printWitnesses(llvm::raw_ostream &os,
                                   llvm::ArrayRef<VerdictGroup> groups) const {
  if (llvm::all_of(witnesses, [](const auto &cases) { return cases.empty(); }))
    return;
  os << "\ncounterexamples:\n";
  for (auto [group, cases] : llvm::zip_equal(groups, witnesses))
    for (const CaseWitness &one : cases) {
      printHead(os, group, one.layers);
      if (one.witness)
        printWitness(os, *one.witness, one.replay);
      else if (!one.failure.empty())
        os << "no numbers: " << one.failure << "\n";
      else if (one.search)
        os << "none found\n    a search over " << one.search->numbers
           << llvm::format(" numbers of the parameters, random weights and activations, came as "
                           "near as %.2g\n",
                           one.search->error);
      else
        os << "none found\n";
    }
}

void CheckEvidence::print(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const {
  printTrials(os, groups);
  printWitnesses(os, groups);
}

llvm::Expected<int> driver::replayWitnesses(StringRef path) {
  auto witnesses = readWitnesses(path);
  if (!witnesses)
    return witnesses.takeError();
  mlir::DialectRegistry dialects;
  registerModelDialects(dialects);
  pluginDialects().appendTo(dialects);
  mlir::MLIRContext context(dialects);
  context.loadAllAvailableDialects();
  std::string block;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    ModelDiagnostic told = toModelDiagnostic(diagnostic, path);
    if (told.place.file == "-") // a text that is no file
      told.place.file = (path + ", block '" + block + "'").str();
    printDiagnostic(told);
    return mlir::success();
  });
  bool good = true;
  for (const Witness &witness : *witnesses) {
    block = witness.name;
    auto replay = replayWitness(witness, context);
    if (!replay)
      return makeError(path + ": " + llvm::toString(replay.takeError()));
    good &= replay->confirms(witness);
    out() << "block '" << witness.name << "': ";
    printWitness(out(), witness, *replay);
    out() << llvm::format("    evaluated again: %.4g; outputs differ by %.2g from the "
                          "recorded ones\n",
                          replay->leastError, replay->difference);
  }
  return good ? ExitGood : ExitAgainst;
}
