#include "ctxc/Evidence/Trial.h"
#include "BlockRun.h"
#include "ctxc/Program/PatchSize.h"
#include "ctxc/Support/Memory.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

namespace {

/// The dual and the applied block of a plan; they stand beside the block while this object lives.
class BuiltPlan {
public:
  BuiltPlan(xf::BlockOp block, const BlockPlan &plan, patch::UpdateKind update) {
    std::string name = block.getSymName().str();
    dual = buildDualBlock(block, plan, update, name + "$tried_dual");
    if (dual)
      applied = buildAppliedBlock(block, plan, name + "$tried_applied");
  }
  ~BuiltPlan() {
    for (xf::BlockOp op : {dual, applied})
      if (op)
        op.erase();
  }
  BuiltPlan(const BuiltPlan &) = delete;
  bool isComplete() const { return bool(applied); }

  xf::BlockOp dual, applied;
};

class Trier {
public:
  Trier(xf::BlockOp block, const BlockPlan &plan, const Sample &sample, const RunSource &from,
        patch::UpdateKind update)
      : block(block), plan(plan), sample(sample), from(from), update(update) {}

  llvm::Expected<Trial> run();
  /// The same, and what its patch does to another token.
  llvm::Expected<std::optional<OtherToken>> runAtOther(const Sample &other);

private:
  llvm::Error compareUnpatched();
  llvm::Error formPatch(xf::BlockOp dual);
  llvm::Error comparePatched(xf::BlockOp applied);
  llvm::Error measureDrift(xf::BlockOp applied);
  llvm::Error measureNorms();

  xf::BlockOp block;
  const BlockPlan &plan;
  const Sample &sample;
  RunSource from;
  patch::UpdateKind update;

  Activations wanted; ///< T_C
  std::vector<BlockPatch> patch;
  Trial trial;
};

} // namespace

static bool patchesNothing(const BlockPlan &plan) { return plannedParameters(plan).empty(); }

static double difference(const Activations &a, const Activations &b) {
  double worst = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    if (x.size())
      worst = std::max(worst, (x - y).cwiseAbs().maxCoeff());
  return worst;
}

static double largest(const Matrix &m) { return m.size() ? m.cwiseAbs().maxCoeff() : 0; }

static bool isFinite(const Activations &rows) {
  return llvm::all_of(rows, [](const Matrix &m) { return m.allFinite(); });
}

llvm::Error Trier::compareUnpatched() {
  auto runs = runBoth(block, sample, from);
  if (!runs)
    return runs.takeError();
  if (!isFinite(runs->full) || !isFinite(runs->reduced))
    return errorAt(block, "has outputs that are not finite on the activations that it was given");
  wanted = std::move(runs->full);
  trial.control = difference(runs->reduced, wanted);
  for (const Matrix &output : wanted)
    trial.largestOutput = std::max(trial.largestOutput, largest(output));
  return llvm::Error::success();
}

/// The largest number that `body` computed.
static double largestOf(xf::BlockOp body, const Evaluation &evaluation) {
  double worst = 0;
  for (Operation &op : body.getBody().front().without_terminator())
    if (!isa<xf::ParamOp>(op))
      for (Value result : op.getResults())
        worst = std::max(worst, largest(evaluation.rows(result)));
  return worst;
}

/// Whether `body` has a norm without epsilon of what is as small as the roundings of a sum of the
/// numbers that it was computed from.
static bool normsRounding(xf::BlockOp body, const Evaluation &evaluation) {
  constexpr double rounding = 1e-13;
  for (auto norm : body.getBody().getOps<xf::NormalizeOp>()) {
    Operation *maker = norm.getData().getDefiningOp();
    if (!norm.getEps().isZero() || !maker)
      continue;
    double from = 0;
    for (Value operand : maker->getOperands())
      if (!operand.getDefiningOp<xf::ParamOp>())
        from = std::max(from, largest(evaluation.rows(operand)));
    if (largest(evaluation.rows(norm.getData())) <= rounding * from)
      return true;
  }
  return false;
}

llvm::Error Trier::formPatch(xf::BlockOp dual) {
  BlockState fullState;
  if (sample.contextSize() > 0)
    if (auto done = runTokens(block, sample.context, 0, fullState, from); !done)
      return done.takeError();
  auto reducedState = keptState(block, sample, from);
  if (!reducedState)
    return reducedState.takeError();

  int64_t token = 0, position = sample.contextSize();
  Environment environment{from.weights,
                          from.layer,
                          token,
                          position,
                          {{xf::Run::full, &fullState}, {xf::Run::reduced, &*reducedState}}};
  environment.parameters = from.parameters;
  Activations inputs = sample.full;
  llvm::append_range(inputs, sample.reduced);
  Evaluation evaluation(environment);
  auto outputs = evaluateBlock(dual, inputs, evaluation);
  if (!outputs)
    return outputs.takeError();
  trial.largestValue = largestOf(dual, evaluation);
  trial.normsRounding = normsRounding(dual, evaluation);
  for (const LayerObligations &counts : environment.obligations) {
    trial.harmless += counts.harmless;
    trial.harmful += counts.harmful;
  }
  patch = std::move(environment.stores);
  return llvm::Error::success();
}

llvm::Error Trier::comparePatched(xf::BlockOp applied) {
  auto outputs = runReduced(block, applied, sample, from, patch);
  if (!outputs)
    return outputs.takeError();
  if (!isFinite(*outputs))
    return errorAt(block, "has outputs that are not finite under the patch of its plan");
  trial.error = difference(*outputs, wanted);
  return llvm::Error::success();
}

llvm::Error Trier::measureDrift(xf::BlockOp applied) {
  if (sample.others.empty() || sample.others.front().rows() == 0)
    return llvm::Error::success();
  BlockState plainState, patchedState;
  auto plain = runTokens(block, sample.others, 0, plainState, from);
  if (!plain)
    return plain.takeError();
  auto patched = runTokens(applied, sample.others, 0, patchedState, from, patch);
  if (!patched)
    return patched.takeError();
  int64_t count = sample.others.front().rows();
  for (int64_t t = 0; t < count; ++t) {
    double moved = 0, norm = 0;
    for (auto [a, b] : llvm::zip_equal(*plain, *patched)) {
      moved += (a.row(t) - b.row(t)).squaredNorm();
      norm += a.row(t).squaredNorm();
    }
    trial.drift += std::sqrt(norm > 0 ? moved / norm : moved) / double(count);
  }
  return llvm::Error::success();
}

/// ‖Δ‖² of a patch in its block's form: a rank-1 change, one for each slot, or a delta.
static double squaredNorm(const BlockPatch &patch) {
  if (patch.parts.size() == 3) {
    int64_t slots = patch.parts[2].cols();
    auto ofSlot = [&](int part, int64_t j) {
      int64_t n = patch.parts[part].cols() / slots;
      return patch.parts[part].middleCols(j * n, n).squaredNorm();
    };
    double sum = 0;
    for (int64_t j = 0; j < slots; ++j)
      sum += ofSlot(0, j) * ofSlot(1, j);
    return sum;
  }
  double product = 1;
  for (const Matrix &part : patch.parts)
    product *= part.squaredNorm();
  return product;
}

llvm::Error Trier::measureNorms() {
  double total = 0;
  for (xf::ParamOp param : plannedParameters(plan)) {
    ++trial.patched;
    auto entry =
        llvm::find_if(patch, [&](const BlockPatch &p) { return p.parameter == param.getName(); });
    if (entry == patch.end())
      continue;
    double own = 0;
    if (auto given = from.parameters.find(param.getName()); given != from.parameters.end()) {
      own = given->second.squaredNorm();
    } else {
      auto numbers = readParameter(param, from);
      if (!numbers)
        return numbers.takeError();
      for (double x : *numbers)
        own += x * x;
    }
    double change = squaredNorm(*entry);
    total += change;
    trial.relativeNorm = std::max(trial.relativeNorm, std::sqrt(change / (own > 0 ? own : 1)));
  }
  trial.patchNorm = std::sqrt(total);
  return llvm::Error::success();
}

llvm::Expected<Trial> Trier::run() {
  if (llvm::Error error = compareUnpatched())
    return error;
  if (patchesNothing(plan)) {
    trial.error = trial.control;
    return trial;
  }
  BuiltPlan built(block, plan, update);
  if (!built.isComplete())
    return errorAt(block, "has a plan that cannot be built; see the messages above");
  if (llvm::Error error = formPatch(built.dual))
    return error;
  if (llvm::Error error = comparePatched(built.applied))
    return error;
  if (llvm::Error error = measureDrift(built.applied))
    return error;
  if (llvm::Error error = measureNorms())
    return error;
  return trial;
}

llvm::Expected<std::optional<OtherToken>> Trier::runAtOther(const Sample &other) {
  auto own = run();
  if (!own)
    return own.takeError();
  if (!own->isExact() || patch.empty())
    return std::nullopt;
  BuiltPlan built(block, plan, update);
  if (!built.isComplete())
    return errorAt(block, "has a plan that cannot be built; see the messages above");
  auto runs = runBoth(block, other, from);
  if (!runs)
    return runs.takeError();
  auto patched = runReduced(block, built.applied, other, from, patch);
  if (!patched)
    return patched.takeError();
  return OtherToken{difference(*patched, runs->full), difference(runs->reduced, runs->full)};
}

double Trial::conditioning() const {
  return std::max({1.0, largestOutput, largestValue, relativeNorm});
}

/// Beyond, roundings of 1e-16 are errors that one sees.
static constexpr double largestConditioning = 1e6;
double Trial::tolerance() const {
  constexpr double rounding = 1e-9;
  double ofArithmetic = rounding * std::min(conditioning(), largestConditioning);
  double ofOutputs = rounding * std::max(1.0, largestOutput);
  return std::min(ofArithmetic, std::max(ofOutputs, 1e-3 * control));
}

TrialOutcome Trial::outcome() const {
  if (!isPatchOfSize(relativeNorm) || normsRounding)
    return TrialOutcome::IllConditioned;
  if (error <= tolerance())
    return TrialOutcome::Exact;
  return conditioning() > largestConditioning ? TrialOutcome::IllConditioned : TrialOutcome::Wrong;
}

std::string Trial::whyNotExact() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!isPatchOfSize(relativeNorm))
    os << llvm::format("the patch is %.2g times its parameter, more than %.0e", relativeNorm,
                       largestRelativeNorm);
  else if (normsRounding)
    os << "a norm without epsilon divides a rounding by itself";
  else if (outcome() == TrialOutcome::IllConditioned)
    os << llvm::format("numbers as large as %.2g, more than %.0e, leave an error of %.2g",
                       conditioning(), largestConditioning, error);
  else if (outcome() == TrialOutcome::Wrong)
    os << llvm::format("an error of %.2g, expected at most %.2g", error, tolerance());
  return text;
}

/// Bytes that a trial of `block` takes: random weights, one parameter widened, and activations.
static uint64_t bytesToTry(xf::BlockOp block, const TrialOptions &options) {
  llvm::StringMap<StoredTensor> unstored;
  if (options.sparse)
    unstored = countedMatrices(block, options.layer, options.seed);
  uint64_t weights = 0, largest = 0, values = 0, tokens = 2 + options.context + options.others;
  for (Operation &op : block.getBody().front())
    for (Value result : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      uint64_t numbers = type ? type.getNumElements() : 1;
      if (auto param = dyn_cast<xf::ParamOp>(op)) {
        if (unstored.contains(param.getName()))
          continue;
        largest = std::max(largest, numbers);
        weights += options.weights ? 0 : 4 * numbers;
      } else {
        values += numbers;
      }
    }
  return weights + 8 * largest + 2 * 8 * tokens * values;
}

std::string ctxc::lackOfMemory(xf::BlockOp block, const TrialOptions &options) {
  uint64_t needed = bytesToTry(block, options);
  std::optional<uint64_t> there = availableMemory();
  if (!there || needed <= *there)
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("needs %.1f GB to be tried, and %.1f GB of memory "
                                                 "are free; try a narrower block of its structure",
                                                 double(needed) * 1e-9, double(*there) * 1e-9);
  return text;
}

namespace {
/// What a trial runs with, where the options give nothing.
struct Drawn {
  Drawn(xf::BlockOp block, const TrialOptions &options)
      : weights(options.weights ? nullptr : randomWeights(options.seed)),
        sample(options.sample ? Sample()
                              : randomSample(block, {options.seed, options.context, options.others,
                                                     /*kept=*/0, options.inputsAreSources})),
        from{options.weights ? *options.weights : *weights, options.layer} {
    if (options.sparse)
      from.parameters = countedMatrices(block, options.layer, options.seed);
  }
  std::unique_ptr<Weights> weights;
  Sample sample;
  RunSource from;
};
} // namespace

/// Calls `work` with a trier, if there is memory for it.
template <typename Work>
static auto withTrier(xf::BlockOp block, const BlockPlan &plan, const TrialOptions &options,
                      Work work) -> decltype(work(std::declval<Trier &>())) {
  if (std::string lack = lackOfMemory(block, options); !lack.empty())
    return errorAt(block, lack);
  needReference(block);
  Drawn drawn(block, options);
  Trier trier(block, plan, options.sample ? *options.sample : drawn.sample, drawn.from,
              options.update);
  return work(trier);
}

llvm::Expected<Trial> ctxc::tryPlan(xf::BlockOp block, const BlockPlan &plan,
                                    const TrialOptions &options) {
  return withTrier(block, plan, options, [](Trier &trier) { return trier.run(); });
}

llvm::Expected<std::optional<OtherToken>> ctxc::tryAtOther(xf::BlockOp block, const BlockPlan &plan,
                                                           const Sample &other,
                                                           const TrialOptions &options) {
  return withTrier(block, plan, options, [&](Trier &trier) { return trier.runAtOther(other); });
}

//===----------------------------------------------------------------------===//
// Text and JSON
//===----------------------------------------------------------------------===//

llvm::json::Object ctxc::trialJson(const Trial &trial) {
  return llvm::json::Object{{"error", trial.error},
                            {"control", trial.control},
                            {"conditioning", trial.conditioning()},
                            {"exact", trial.isExact()},
                            {"tolerance", trial.tolerance()},
                            {"why", trial.whyNotExact()},
                            {"patchNorm", trial.patchNorm},
                            {"relativeNorm", trial.relativeNorm},
                            {"drift", trial.drift},
                            {"parameters", trial.patched},
                            {"harmful", trial.harmful},
                            {"harmless", trial.harmless}};
}

std::string ctxc::trialText(const Trial &trial) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("error %.2g, without the patch %.3g; patch %.3g, drift %.3g", trial.error,
                      trial.control, trial.patchNorm, trial.drift)
      << "; " << trial.harmful << " harmful and " << trial.harmless << " harmless zeros";
  return text;
}
