#include "BlockRun.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Reference/Reference.h"
#include "dialects/XF/BlockFacts.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

void ctxc::needReference(xf::BlockOp block) {
  DialectRegistry registry;
  registerReferenceModels(registry);
  block.getContext()->appendDialectRegistry(registry);
}

llvm::StringMap<StoredTensor> ctxc::countedMatrices(xf::BlockOp block, xf::LayerOp layer,
                                                    uint64_t seed) {
  // Of smaller ones all numbers are drawn.
  constexpr int64_t large = 16384;
  llvm::StringMap<StoredTensor> matrices;
  block.walk([&](xf::ParamOp param) {
    auto type = cast<RankedTensorType>(param.getType());
    if (type.getRank() < 2 ||
        type.getShape().take_back(2).front() * type.getShape().back() <= large)
      return;
    StoredTensor matrix = StoredTensor::counted(0, type.getShape());
    matrix.counter.reset();
    for (const std::string &name : xf::storedTensors(param, layer))
      matrix.counters.push_back(llvm::xxh3_64bits(name) + seed);
    std::string name = layer ? layer.getStoredName(param.getName()) : param.getName().str();
    if (!isBankName(name)) {
      matrix.counter = matrix.counters.front();
      matrix.counters.clear();
    }
    matrices[param.getName()] = std::move(matrix);
  });
  return matrices;
}

llvm::Expected<std::vector<double>> ctxc::readParameter(xf::ParamOp param, const RunSource &from) {
  auto type = cast<RankedTensorType>(param.getType());
  if (auto given = from.parameters.find(param.getName()); given != from.parameters.end()) {
    std::vector<double> numbers(type.getNumElements());
    given->second.read(0, numbers);
    return numbers;
  }
  RunSource source = from;
  std::string name =
      source.layer ? source.layer.getStoredName(param.getName()) : param.getName().str();
  std::vector<const void *> pieces;
  if (isBankName(name)) {
    auto slices = getSlices(source.weights, name, type);
    if (!slices)
      return slices.takeError();
    pieces = std::move(*slices);
  } else {
    auto whole = source.weights.get(name, type);
    if (!whole)
      return whole.takeError();
    pieces = {*whole};
  }
  std::vector<double> numbers(type.getNumElements());
  size_t each = numbers.size() / pieces.size();
  for (auto [i, piece] : llvm::enumerate(pieces))
    readDoubles(storageOf(type.getElementType()), piece,
                MutableArrayRef(numbers).slice(i * each, each));
  return numbers;
}

Activations ctxc::firstTokens(const Activations &all, int64_t count) {
  return llvm::map_to_vector(all, [&](const Matrix &m) { return Matrix(m.topRows(count)); });
}

llvm::Expected<Activations> ctxc::runTokens(xf::BlockOp block, const Activations &inputs,
                                            int64_t first, BlockState &state, const RunSource &from,
                                            std::vector<BlockPatch> loads, Seen seen) {
  int64_t count = inputs.empty() ? 1 : inputs.front().rows();
  std::vector<int64_t> tokens(count, 0), positions(count);
  for (auto [i, position] : llvm::enumerate(positions))
    position = first + i;
  Environment environment{from.weights, from.layer, tokens, positions, {{std::nullopt, &state}}};
  environment.loads = std::move(loads);
  environment.parameters = from.parameters;
  Evaluation evaluation(environment);
  auto outputs = evaluateBlock(block, inputs, evaluation);
  if (outputs && seen)
    seen(evaluation);
  return outputs;
}

/// The state after the first `count` tokens of the context.
static llvm::Expected<BlockState> stateAfter(xf::BlockOp block, const Sample &sample, int64_t count,
                                             const RunSource &from) {
  BlockState state;
  if (count > 0)
    if (auto done = runTokens(block, firstTokens(sample.context, count), 0, state, from); !done)
      return done.takeError();
  return state;
}

llvm::Expected<BlockState> ctxc::keptState(xf::BlockOp block, const Sample &sample,
                                           const RunSource &from) {
  return stateAfter(block, sample, sample.kept, from);
}

llvm::Expected<Activations> ctxc::runFull(xf::BlockOp block, const Sample &sample,
                                          const RunSource &from, Seen seen) {
  auto state = stateAfter(block, sample, sample.contextSize(), from);
  if (!state)
    return state.takeError();
  return runTokens(block, sample.full, sample.contextSize(), *state, from, {}, seen);
}

llvm::Expected<Activations> ctxc::runReduced(xf::BlockOp block, xf::BlockOp form,
                                             const Sample &sample, const RunSource &from,
                                             std::vector<BlockPatch> loads, Seen seen) {
  auto state = keptState(block, sample, from);
  if (!state)
    return state.takeError();
  return runTokens(form, sample.reduced, sample.contextSize(), *state, from, std::move(loads),
                   seen);
}

llvm::Expected<BothRuns> ctxc::runBoth(xf::BlockOp block, const Sample &sample,
                                       const RunSource &from, Seen seen) {
  auto full = runFull(block, sample, from, seen);
  if (!full)
    return full.takeError();
  auto reduced = runReduced(block, block, sample, from, {}, seen);
  if (!reduced)
    return reduced.takeError();
  return BothRuns{std::move(*full), std::move(*reduced)};
}
