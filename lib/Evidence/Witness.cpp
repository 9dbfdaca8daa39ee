#include "ctxc/Evidence/Witness.h"
#include "RankBound.h"
#include "ReachableSet.h"
#include "RelatedNumbers.h"
#include "Shrink.h"
#include "StandIn.h"
#include "Subject.h"
#include "TensorWeights.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Memory.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

llvm::Expected<const void *> TensorWeights::get(StringRef name, RankedTensorType type) {
  for (const WitnessTensor &tensor : tensors) {
    if (tensor.name != name || tensor.dtype != storageOf(type.getElementType()))
      continue;
    if (ArrayRef<int64_t>(tensor.shape) != type.getShape())
      return makeError("weight '" + name + "' has shape " + shapeText(tensor.shape) +
                       ", expected " + shapeText(type.getShape()));
    return static_cast<const void *>(tensor.bytes.data());
  }
  return makeError("there is no weight '" + name + "' of the type that the block asks for");
}

namespace {

/// What to scale up.
struct Scaling {
  std::string parameter; ///< empty: nothing, or the context
  bool context = false;
  double factor = 1;
};

class WitnessFinder {
public:
  WitnessFinder(Subject &subject, const InputSources &inputsAreSources,
                const WitnessOptions &options)
      : subject(subject), inputsAreSources(inputsAreSources), options(options) {}

  llvm::Expected<std::optional<Witness>> find();

private:
  std::vector<Scaling> scalings() const;
  llvm::Expected<std::optional<Witness>> attempt(uint64_t seed, const Scaling &scaling);
  llvm::Error makeWeights(Witness &witness, const Scaling &scaling) const;

  Subject &subject;
  InputSources inputsAreSources;
  const WitnessOptions &options;
  bool anyResolved = false; ///< of what was tried
};

} // namespace

/// First nothing; then, by growing factors, the contextual part's own parameters, the
/// context, and any other parameter.
std::vector<Scaling> WitnessFinder::scalings() const {
  std::vector<Scaling> result{{}};
  SmallVector<std::string> own, others;
  subject.block.walk([&](xf::ParamOp param) {
    bool isOwn = llvm::any_of(param->getUsers(), [&](Operation *user) {
      return subject.sites.inContextualPart(user) && !subject.moved.moves(user, param.getResult());
    });
    auto &names = isOwn ? own : others;
    if (!llvm::is_contained(names, param.getName()))
      names.push_back(param.getName().str());
  });
  for (double factor : {16.0, 256.0}) {
    for (const std::string &name : llvm::reverse(own)) // the last is nearest to the residual stream
      result.push_back({name, false, factor});
    result.push_back({"", true, factor});
  }
  for (double factor : {16.0, 1.0 / 16})
    for (const std::string &name : others)
      result.push_back({name, false, factor});
  return result;
}

llvm::Error WitnessFinder::makeWeights(Witness &witness, const Scaling &scaling) const {
  std::unique_ptr<Weights> random = randomWeights(witness.seed);
  auto add = [&](const std::string &name, RankedTensorType type, double factor) -> llvm::Error {
    WitnessTensor tensor{
        name, storageOf(type.getElementType()), SmallVector<int64_t, 2>(type.getShape()), {}};
    if (llvm::any_of(witness.weights, [&](const WitnessTensor &known) {
          return known.name == tensor.name && known.dtype == tensor.dtype;
        }))
      return llvm::Error::success();
    auto data = random->get(name, type);
    if (!data)
      return data.takeError();
    std::vector<double> numbers(type.getNumElements());
    readDoubles(tensor.dtype, static_cast<const uint8_t *>(*data), numbers);
    for (double &x : numbers)
      x *= factor;
    tensor.bytes.resize(numbers.size() * bitsOf(tensor.dtype) / 8);
    writeDoubles(tensor.dtype, numbers, tensor.bytes.data());
    witness.weights.push_back(std::move(tensor));
    return llvm::Error::success();
  };
  for (xf::ParamOp param : subject.block.getBody().getOps<xf::ParamOp>()) {
    auto type = cast<RankedTensorType>(param.getType());
    std::string name = param.getName().str();
    double factor = name == scaling.parameter ? scaling.factor : 1;
    if (!isBankName(name)) {
      if (llvm::Error error = add(name, type, factor))
        return error;
      continue;
    }
    auto slice = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
    for (int64_t i = 0; i < type.getDimSize(0); ++i)
      if (llvm::Error error = add(sliceName(name, i), slice, factor))
        return error;
  }
  return llvm::Error::success();
}

/// Rounded to float32, in which witnesses are stored.
static void roundOne(Matrix &m, double factor = 1) {
  m = (m * factor).cast<float>().cast<double>();
}
static void roundAll(Activations &rows, double factor = 1) {
  for (Matrix &m : rows)
    roundOne(m, factor);
}

llvm::Expected<std::optional<Witness>> WitnessFinder::attempt(uint64_t seed,
                                                              const Scaling &scaling) {
  Witness witness;
  witness.seed = seed;
  if (scaling.factor != 1) {
    llvm::raw_string_ostream os(witness.scaled);
    os << (scaling.context ? "the context" : "'" + scaling.parameter + "'") << " by "
       << llvm::format("%g", scaling.factor);
  }
  if (llvm::Error error = makeWeights(witness, scaling))
    return std::move(error);
  witness.sample = randomSample(
      subject.block, {seed, options.context, /*others=*/0, /*kept=*/0, inputsAreSources});
  roundAll(witness.sample.context, scaling.context ? scaling.factor : 1);
  for (auto [i, input] : llvm::enumerate(witness.sample.full)) // what depends on the context, too
    roundOne(input, scaling.context && inputsAreSources.contains(i) ? scaling.factor : 1);
  roundAll(witness.sample.reduced);

  TensorWeights weights(witness.weights);
  auto both = subject.runs(witness.sample, weights);
  if (!both)
    return both.takeError();
  auto &[runs, resolution] = *both;
  if (!resolution.large)
    return std::nullopt;
  anyResolved = true;
  witness.full = joined(runs.full);
  witness.reduced = joined(runs.reduced);
  auto reachable = subject.reachable(witness.sample, weights);
  if (!reachable)
    return reachable.takeError();
  Separation separation;
  if (resolution.small || reachable->isBounded()) {
    separation = separate(*reachable, witness.full);
  } else if (Vector change = subject.ofUnmoved(witness.full - witness.reduced); !change.isZero(0)) {
    separation.direction = change.normalized();
    separation.distance = separation.attained = change.norm();
  }
  if (separation.distance == 0 && resolution.small) {
    witness.byRank = true;
    auto byRank = subject.byRank(witness, weights);
    if (!byRank)
      return byRank.takeError();
    separation = *byRank;
  }
  if (separation.distance == 0)
    return std::nullopt;
  witness.direction = separation.direction;
  witness.target = witness.direction.dot(witness.full);
  witness.limit =
      witness.byRank ? witness.target - separation.distance : reachable->support(witness.direction);
  witness.leastError = witness.target - witness.limit;
  witness.attained = std::max(separation.attained, witness.leastError);
  return witness;
}

llvm::Expected<std::optional<Witness>> WitnessFinder::find() {
  // The part of the change that no patch can make must be more than rounding.
  constexpr double enough = 1e-3;
  std::optional<Witness> best;
  double bestShare = enough;
  for (const Scaling &scaling : scalings())
    for (int i = 0; i < options.seeds; ++i) {
      auto found = attempt(options.seed + i, scaling);
      if (!found)
        return found.takeError();
      if (!*found)
        continue;
      double share = (*found)->leastError / (*found)->change();
      if (share <= bestShare || (*found)->leastError <= 1e-9 * (1 + (*found)->full.norm()))
        continue;
      bestShare = share;
      best = std::move(*found);
      if (share >= options.clear)
        return best;
    }
  if (!anyResolved)
    return errorAt(subject.block,
                   "gives numbers that float64 does not hold, whatever it was tried on");
  return best;
}

static int64_t countNumbers(xf::BlockOp block) {
  int64_t numbers = 0;
  block.walk([&](xf::ParamOp param) {
    numbers += cast<RankedTensorType>(param.getType()).getNumElements();
  });
  return numbers;
}

/// Weights are held as they are stored, as they are written, and one of them in float64.
static llvm::Error checkMemory(xf::BlockOp block) {
  uint64_t numbers = countNumbers(block);
  std::optional<uint64_t> there = availableMemory();
  if (!there || 16 * numbers <= *there)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("needs %.1f GB to look for a counterexample, and "
                                                 "%.1f GB of memory are free",
                                                 16e-9 * double(numbers), double(*there) * 1e-9);
  return errorAt(block, text);
}

/// `module`'s block in smaller sizes, at which the rule of the search rejects it as well.
static Shrunk shrinkFor(StringRef rule, ModuleOp module, const PlanOptions &options) {
  PlanOptions byRule;
  byRule.inputsAreSources = options.inputsAreSources;
  byRule.update = options.update;
  byRule.scope = options.scope;
  byRule.bindings = options.bindings;
  // Some rules reject only what numbers confirm, which is to come.
  byRule.refute = [rule](xf::BlockOp, const PlanOptions &, StringRef asked) {
    return asked == rule ? Refuted{1.0, ""} : Refuted();
  };
  return shrink(module, 2 * WitnessOptions::mostNumbers, [&](xf::BlockOp smaller) {
    Verdict verdict = planBlock(smaller, byRule);
    return verdict.kind == VerdictKind::Rejected && verdict.causes.front().rule == rule;
  });
}

/// Whether the context changes an output of `block`, at its own sizes, by more than roundings.
static bool contextChangesOutput(xf::BlockOp block, const InputSources &inputsAreSources) {
  TrialOptions how;
  how.sparse = true;
  if (!lackOfMemory(block, how).empty())
    return false;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    std::unique_ptr<Weights> weights = randomWeights(seed);
    RunSource from{*weights, {}, countedMatrices(block, {}, seed)};
    Sample sample =
        randomSample(block, {seed, how.context, /*others=*/0, /*kept=*/0, inputsAreSources});
    auto runs = runBoth(block, sample, from);
    if (!runs) {
      llvm::consumeError(runs.takeError());
      continue;
    }
    Vector with = joined(runs->full), without = joined(runs->reduced);
    if (with.allFinite() && (with - without).norm() > 1e-7 * (1 + with.norm()))
      return true;
  }
  return false;
}

/// Whether what a witness shows in smaller sizes is so at the block's own: the context matters
/// there, and numbers that could relate to a size make no difference.
static bool holdsAtOwnSizes(xf::BlockOp block, const Shrunk &shrunk, const PlanOptions &options,
                            const WitnessOptions &search) {
  if (!contextChangesOutput(block, options.inputsAreSources))
    return false;
  for (auto &related : withRelatedNumbers(*shrunk.module, shrunk.becomes)) {
    Subject subject(*related->getOps<xf::BlockOp>().begin(), options.scope);
    auto found = WitnessFinder(subject, options.inputsAreSources, search).find();
    bool isThere = found && *found;
    if (!found)
      llvm::consumeError(found.takeError());
    if (!isThere)
      return false;
  }
  return true;
}

llvm::Expected<std::optional<Witness>> ctxc::findWitness(xf::BlockOp block,
                                                         const PlanOptions &options,
                                                         xf::LayerOp layer,
                                                         const WitnessOptions &search) {
  if (sharesBankMembers(block, layer))
    return std::nullopt;
  needReference(block);
  OwningOpRef<ModuleOp> module = standAlone(block, options.bindings, layer);
  Shrunk shrunk;
  // What a rule says of any contextual op may be shown of one.
  if (!search.rule.empty())
    replaceUnknownContext(*module->getOps<xf::BlockOp>().begin());
  if (countNumbers(block) > WitnessOptions::mostNumbers) {
    if (!search.rule.empty())
      shrunk = shrinkFor(search.rule, *module, options);
    if (!shrunk.module && !search.anySize)
      return errorAt(block, "has " + std::to_string(countNumbers(block)) + " numbers, more than " +
                                std::to_string(WitnessOptions::mostNumbers));
  }
  ModuleOp where = shrunk.module ? *shrunk.module : *module;
  xf::BlockOp alone = *where.getOps<xf::BlockOp>().begin();
  if (llvm::Error error = checkMemory(alone))
    return std::move(error);
  Subject subject(alone, options.scope);
  auto found = WitnessFinder(subject, options.inputsAreSources, search).find();
  if (!found || !*found)
    return found;
  if (shrunk.module &&
      !holdsAtOwnSizes(*module->getOps<xf::BlockOp>().begin(), shrunk, options, search))
    return std::nullopt;
  (*found)->name = block.getSymName().str();
  (*found)->allSites = options.scope == SiteScope::All;
  (*found)->sizes = shrunk.sizes;
  llvm::raw_string_ostream((*found)->block) << where;
  return found;
}
