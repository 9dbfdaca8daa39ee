#include "Numbers.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Reference/Registration.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;
using namespace ctxc::reference;

double Random::uniform() {
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return double(((x ^ (x >> 31)) >> 11) + 1) * 0x1p-53;
}

double Random::normal() {
  double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * M_PI * uniform());
}

Matrix Random::normal(int64_t rows, int64_t columns) {
  Matrix m(rows, columns);
  for (double &x : m.reshaped())
    x = normal();
  return m;
}

int64_t proof::countNumbers(xf::BlockOp block) {
  int64_t numbers = 0;
  block.walk([&](xf::ParamOp param) { numbers += sizeOf(param); });
  return numbers;
}

void proof::needReference(xf::BlockOp block) {
  DialectRegistry registry;
  registerReferenceModels(registry);
  block.getContext()->appendDialectRegistry(registry);
}

BlockRun::BlockRun(Weights &weights, xf::LayerOp layer, int64_t first, int64_t count,
                   BlockState &state, const llvm::StringMap<StoredTensor> &parameters)
    : tokens(count, 0), positions(count),
      environment{weights, layer, tokens, positions, {{std::nullopt, &state}}},
      values(environment) {
  for (auto [i, position] : llvm::enumerate(positions))
    position = first + i;
  environment.parameters = parameters;
}

Numbers::Numbers(const Structure &structure, const Flow &flow, int64_t seed)
    : structure(structure), flow(flow), seed(seed), random(randomWeights(seed)) {
  Random numbers(seed);
  auto draw = [&](int64_t rows) {
    return llvm::map_to_vector(flow.body().getArguments(), [&](Value argument) {
      return numbers.normal(rows, sizeOf(argument));
    });
  };
  sample.context = draw(contextSize);
  sample.full = draw(1);
  sample.reduced = sample.full;
  if (structure.inputsDepend)
    for (auto [i, other] : llvm::enumerate(draw(1)))
      if (!structure.equalInputs.count(i))
        sample.reduced[i] = other;
}

/// Evaluates op by op. An op that reads the context and has no meaning in the reference gives other
/// random numbers in each run.
llvm::Error Numbers::evaluate(BlockRun &run, ArrayRef<Matrix> inputs, BlockState &state,
                              uint64_t stream) {
  for (auto [argument, input] : llvm::zip_equal(flow.body().getArguments(), inputs))
    run.values.set(argument, input);
  unsigned ordinal = 0;
  Random drawn(uint64_t(seed) * 16 + stream);
  for (Operation &op : flow.body().without_terminator()) {
    auto meaning = dyn_cast<ReferenceOpInterface>(op);
    bool reads = isa<xf::ContextualOpInterface>(op);
    if (reads)
      run.values.setState(&state.op(ordinal++));
    if (meaning) {
      if (llvm::Error error = meaning.evaluate(run.values))
        return error;
    } else if (reads) {
      for (Value result : op.getResults())
        run.values.set(result, drawn.normal(run.tokens.size(), sizeOf(result)));
    } else {
      return errorAt(&op, "has no meaning in the reference");
    }
  }
  for (Operation &op : flow.body().without_terminator())
    for (Value result : op.getResults())
      if (!result.getDefiningOp<xf::ParamOp>() && !run.values.rows(result).allFinite())
        return errorAt(&op, "has a result that is not finite on random weights");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<BlockRun>> Numbers::full() {
  states.push_back(std::make_unique<BlockState>());
  BlockState &state = *states.back();
  BlockRun context(*random, structure.layer, 0, contextSize, state, stored);
  if (llvm::Error error = evaluate(context, sample.context, state, 1))
    return std::move(error);
  auto run = std::make_unique<BlockRun>(*random, structure.layer, contextSize, 1, state, stored);
  if (llvm::Error error = evaluate(*run, sample.full, state, 2))
    return std::move(error);
  return run;
}

llvm::Expected<std::unique_ptr<BlockRun>> Numbers::reduced() {
  states.push_back(std::make_unique<BlockState>());
  auto run =
      std::make_unique<BlockRun>(*random, structure.layer, contextSize, 1, *states.back(), stored);
  if (llvm::Error error = evaluate(*run, sample.reduced, *states.back(), 3))
    return std::move(error);
  return run;
}

llvm::Expected<std::vector<double> *> Numbers::parameter(xf::ParamOp param) {
  std::string name = param.getName().str();
  auto found = changed.find(name);
  if (found != changed.end())
    return &found->second;
  auto type = cast<RankedTensorType>(param.getType());
  xf::LayerOp layer = structure.layer;
  std::string storedName = layer ? layer.getStoredName(name) : name;
  std::vector<const void *> pieces;
  if (isBankName(storedName)) {
    auto slices = getSlices(*random, storedName, type);
    if (!slices)
      return slices.takeError();
    pieces = std::move(*slices);
  } else {
    auto whole = random->get(storedName, type);
    if (!whole)
      return whole.takeError();
    pieces = {*whole};
  }
  std::vector<double> &numbers = changed[name];
  numbers.resize(type.getNumElements());
  size_t each = numbers.size() / pieces.size();
  for (auto [i, piece] : llvm::enumerate(pieces))
    readDoubles(storageOf(type.getElementType()), static_cast<const uint8_t *>(piece),
                MutableArrayRef(numbers).slice(i * each, each));
  StoredTensor &tensor = stored[name];
  tensor.dtype = DType::F64;
  tensor.data = reinterpret_cast<const uint8_t *>(numbers.data());
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  return &numbers;
}

llvm::Error Numbers::scale(StringRef what, double factor) {
  if (what == "context")
    for (Matrix &m : sample.context)
      m *= factor;
  for (xf::ParamOp param : flow.body().getOps<xf::ParamOp>())
    if (param.getName() == what) {
      auto numbers = parameter(param);
      if (!numbers)
        return numbers.takeError();
      for (double &x : **numbers)
        x *= factor;
      break;
    }
  return llvm::Error::success();
}

Vector Numbers::outputs(const BlockRun &run, ArrayRef<int64_t> which) const {
  int64_t size = 0, at = 0;
  for (int64_t i : which)
    size += sizeOf(flow.outputs()[i]);
  Vector all(size);
  for (int64_t i : which) {
    const Matrix &rows = run.values.rows(flow.outputs()[i]);
    all.segment(at, rows.cols()) = rows.row(0);
    at += rows.cols();
  }
  return all;
}

double Numbers::largest(const BlockRun &run) const {
  double worst = 0;
  for (Operation &op : flow.body().without_terminator())
    if (!isa<xf::ParamOp>(op))
      for (Value result : op.getResults())
        worst = std::max(worst, run.values.rows(result).cwiseAbs().maxCoeff());
  return worst;
}
