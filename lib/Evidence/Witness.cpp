#include "ctxc/Evidence/Witness.h"
#include "RankBound.h"
#include "ReachableSet.h"
#include "Shrink.h"
#include "StandIn.h"
#include "TensorWeights.h"
#include "ctxc/Checkpoint/Safetensors.h"
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

/// A block in a module of its own, with the options of the search.
class Subject {
public:
  Subject(xf::BlockOp block, SiteScope scope)
      : block(block), graph(block), zeros(block), sites(graph, zeros, none, scope),
        moved(graph, sites), spans(findOutputSpans(graph, moved)) {
    needReference(block);
  }

  llvm::Expected<ConvexSum> reachable(const Sample &sample, Weights &weights) const {
    return reachableOutputs(block, moved, zeros, sample, {weights, {}});
  }

  /// How far the witness's full run is from all outputs that mix too few vectors.
  llvm::Expected<Separation> byRank(const Witness &witness, Weights &weights) const {
    return separateByRank(block, spans, witness.sample, {weights, {}}, witness.full);
  }

  xf::BlockOp block;
  Bindings none; ///< empty: what a layer freezes is written into the block
  BlockGraph graph;
  ZeroRange zeros;
  Sites sites;
  Moved moved;
  std::vector<OutputSpan> spans;
};

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
  bool anyFinite = false; ///< of what was tried
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
  auto full = runFull(subject.block, witness.sample, {weights, {}});
  if (!full)
    return full.takeError();
  auto reduced = runReduced(subject.block, subject.block, witness.sample, {weights, {}});
  if (!reduced)
    return reduced.takeError();
  witness.full = joined(*full);
  witness.reduced = joined(*reduced);
  if (!witness.full.allFinite() || !witness.reduced.allFinite())
    return std::nullopt;
  anyFinite = true;
  auto reachable = subject.reachable(witness.sample, weights);
  if (!reachable)
    return reachable.takeError();
  Separation separation = separate(*reachable, witness.full);
  if (separation.distance == 0) {
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
  if (!anyFinite)
    return errorAt(subject.block, "gives numbers that are not finite, whatever it was tried on");
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

llvm::Expected<std::optional<Witness>> ctxc::findWitness(xf::BlockOp block,
                                                         const PlanOptions &options,
                                                         xf::LayerOp layer,
                                                         const WitnessOptions &search) {
  if (sharesBankMembers(block, layer))
    return std::nullopt;
  needReference(block);
  OwningOpRef<ModuleOp> module = standAlone(block, options.bindings, layer);
  std::string sizes;
  // What a rule says of any contextual op may be shown of one.
  if (!search.rule.empty())
    replaceUnknownContext(*module->getOps<xf::BlockOp>().begin());
  if (countNumbers(block) > WitnessOptions::mostNumbers) {
    Shrunk shrunk = search.rule.empty() ? Shrunk() : shrinkFor(search.rule, *module, options);
    if (shrunk.module) {
      module = std::move(shrunk.module);
      sizes = shrunk.sizes;
    } else if (!search.anySize) {
      return errorAt(block, "has " + std::to_string(countNumbers(block)) + " numbers, more than " +
                                std::to_string(WitnessOptions::mostNumbers));
    }
  }
  xf::BlockOp alone = *module->getOps<xf::BlockOp>().begin();
  if (llvm::Error error = checkMemory(alone))
    return std::move(error);
  Subject subject(alone, options.scope);
  auto found = WitnessFinder(subject, options.inputsAreSources, search).find();
  if (!found || !*found)
    return found;
  (*found)->name = block.getSymName().str();
  (*found)->allSites = options.scope == SiteScope::All;
  (*found)->sizes = sizes;
  llvm::raw_string_ostream((*found)->block) << *module;
  return found;
}

//===----------------------------------------------------------------------===//
// Replay
//===----------------------------------------------------------------------===//

bool Replay::confirms(const Witness &witness) const {
  // What patches leave may be far larger than what it is compared with.
  double slack = 1e-9 * (1 + witness.full.norm() + std::abs(witness.leastError));
  return difference <= 1e-12 * (1 + witness.full.norm()) && leastError > 0 &&
         std::abs(leastError - witness.leastError) <= slack &&
         (!search || search->error >= witness.leastError - slack);
}

/// The reader accepts any values; here they are checked.
static llvm::Error checkShapes(const Witness &witness) {
  const Sample &sample = witness.sample;
  auto rowsAre = [](const Activations &all, int64_t rows) {
    return llvm::all_of(all, [&](const Matrix &m) { return m.rows() == rows; });
  };
  if (!rowsAre(sample.context, sample.contextSize()) || !rowsAre(sample.full, 1) ||
      !rowsAre(sample.reduced, 1) || sample.full.size() != sample.reduced.size() ||
      (!sample.context.empty() && sample.context.size() != sample.full.size()))
    return makeError("the witness's activations do not belong together: expected a row in 'full' "
                     "and 'reduced' for each of the block's inputs, and equally many in 'context'");
  if (witness.direction.size() == 0 || witness.direction.norm() == 0)
    return makeError("the witness's direction is zero");
  return llvm::Error::success();
}

llvm::Expected<Replay> ctxc::replayWitness(const Witness &witness, MLIRContext &context,
                                           const SearchOptions &search) {
  if (llvm::Error error = checkShapes(witness))
    return std::move(error);
  if (llvm::Error error = checkNesting(witness.block, "the witness's block"))
    return std::move(error);
  auto module = parseSourceString<ModuleOp>(witness.block, &context);
  if (!module || !llvm::hasSingleElement(module->getOps<xf::BlockOp>()))
    return makeError("the witness's block is no module of one xf.block");
  PlanOptions options;
  options.scope = witness.allSites ? SiteScope::All : SiteScope::MLP;
  Subject subject(*module->getOps<xf::BlockOp>().begin(), options.scope);
  TensorWeights weights(witness.weights);
  auto full = runFull(subject.block, witness.sample, {weights, {}});
  if (!full)
    return full.takeError();
  auto reduced = runReduced(subject.block, subject.block, witness.sample, {weights, {}});
  if (!reduced)
    return reduced.takeError();
  Vector T_C = joined(*full), T = joined(*reduced);
  if (T_C.size() != witness.full.size() || T.size() != witness.reduced.size() ||
      T_C.size() != witness.direction.size())
    return makeError("the witness's outputs and direction do not have its block's size");
  Replay replay;
  replay.difference = std::max((T_C - witness.full).cwiseAbs().maxCoeff(),
                               (T - witness.reduced).cwiseAbs().maxCoeff());
  if (witness.byRank) {
    auto separation = subject.byRank(witness, weights);
    if (!separation)
      return separation.takeError();
    replay.leastError = separation->distance;
  } else {
    auto reachable = subject.reachable(witness.sample, weights);
    if (!reachable)
      return reachable.takeError();
    Vector w = witness.direction.normalized();
    replay.leastError = w.dot(T_C) - reachable->support(w);
  }
  auto searched = searchPatch(subject.block, options, witness.sample, weights, {}, search);
  if (searched)
    replay.search = *searched;
  else
    llvm::consumeError(searched.takeError()); // too large to search
  return replay;
}
