// Damped Gauss-Newton in random subspaces of all patchable numbers, with as many random
// directions as allow every change of the outputs that all numbers together allow.
#include "ctxc/Evidence/PatchSearch.h"
#include "Random.h"
#include "ReachableSet.h"
#include "ctxc/Support/Error.h"
#include <Eigen/Cholesky>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::reference;

namespace {

class Searcher {
public:
  Searcher(xf::BlockOp block, const Sample &sample, const RunSource &from, uint64_t seed)
      : block(block), sample(sample), from(from), random(seed) {}

  llvm::Error prepare(ArrayRef<xf::ParamOp> parameters);
  llvm::Error search(const SearchOptions &options);

  PatchSearch result;

private:
  struct Segment {
    std::string name;
    SmallVector<int64_t, 2> shape;
    int64_t first, size;
    double scale; ///< the size of a typical entry
  };

  /// `largest` becomes the largest number on the way.
  llvm::Expected<Vector> outputsOf(const Vector &numbers, double *largest = nullptr);
  llvm::Error descend(Vector numbers, const SearchOptions &options);
  bool isSpent(const SearchOptions &options) const {
    return result.evaluations * std::max<int64_t>(result.numbers, 1) > options.budget;
  }
  llvm::Expected<double> roundingOf(const Vector &numbers, const Vector &outputs);
  Vector direction();
  Vector start(int restart);

  xf::BlockOp block;
  const Sample &sample;
  RunSource from;
  Random random;
  Vector original, target;
  std::vector<Segment> segments;
  BlockState kept;
};

} // namespace

llvm::Error Searcher::prepare(ArrayRef<xf::ParamOp> parameters) {
  std::vector<double> all;
  for (xf::ParamOp param : parameters) {
    auto type = cast<RankedTensorType>(param.getType());
    int64_t first = all.size(), n = type.getNumElements();
    if (first + n > 200000)
      return errorAt(block, "has more numbers to search for a patch than 200000");
    auto numbers = readParameter(param, from);
    if (!numbers)
      return numbers.takeError();
    all.insert(all.end(), numbers->begin(), numbers->end());
    double squares = 0;
    for (double x : *numbers)
      squares += x * x;
    double scale = squares > 0 ? std::sqrt(squares / double(n)) : 1;
    segments.push_back(
        {param.getName().str(), SmallVector<int64_t, 2>(type.getShape()), first, n, scale});
  }
  original = Eigen::Map<const Vector>(all.data(), all.size());
  result.numbers = all.size();

  auto full = runFull(block, sample, from);
  if (!full)
    return full.takeError();
  target = joined(*full);
  auto state = keptState(block, sample, from);
  if (!state)
    return state.takeError();
  kept = std::move(*state);
  return llvm::Error::success();
}

/// The largest number on the way from the inputs to the outputs.
static double largestOf(xf::BlockOp block, const Evaluation &evaluation) {
  double largest = 0;
  for (Operation &op : block.getBody().front().without_terminator())
    if (!isa<xf::ParamOp>(op))
      for (Value value : op.getResults())
        largest = std::max(largest, evaluation.rows(value).cwiseAbs().maxCoeff());
  return largest;
}

llvm::Expected<Vector> Searcher::outputsOf(const Vector &numbers, double *largest) {
  BlockState state = kept;
  int64_t token = 0, position = sample.contextSize();
  Environment environment{from.weights, from.layer, token, position, {{std::nullopt, &state}}};
  environment.parameters = from.parameters;
  for (const Segment &segment : segments)
    environment.parameters[segment.name] = {
        DType::F64, reinterpret_cast<const uint8_t *>(numbers.data() + segment.first),
        segment.shape};
  Evaluation evaluation(environment);
  auto outputs = evaluateBlock(block, sample.reduced, evaluation);
  if (!outputs)
    return outputs.takeError();
  ++result.evaluations;
  if (largest)
    *largest = largestOf(block, evaluation);
  return joined(*outputs);
}

/// A random direction in which every parameter changes by its typical size.
Vector Searcher::direction() {
  Vector d(original.size());
  for (const Segment &segment : segments)
    for (int64_t i = 0; i < segment.size; ++i)
      d[segment.first + i] = segment.scale * random.normal();
  return d;
}

Vector Searcher::start(int restart) {
  if (restart == 0)
    return original;
  Vector numbers = direction();
  for (const Segment &segment : segments)
    numbers.segment(segment.first, segment.size) *= std::pow(10, 3 * random.uniform() - 1);
  return restart % 2 ? Vector(original + numbers) : numbers;
}

/// What rounding may have done to the outputs; infinity where numbers that differ from these by
/// some last digits give others. Where large values cancel, an output may come near its target by
/// what rounding leaves of them, always the same or not, and no patch of real numbers does.
llvm::Expected<double> Searcher::roundingOf(const Vector &numbers, const Vector &outputs) {
  constexpr double digits = 1e-14;
  const double slack = 1e-9 * (1 + target.norm()); // as Replay::confirms has it
  double largest = 0;
  for (int i = 0; i < 2; ++i) {
    Vector other = numbers;
    for (double &x : other)
      x *= 1 + digits * random.normal();
    auto reached = outputsOf(other, &largest);
    if (!reached)
      return reached.takeError();
    if (!((*reached - outputs).norm() <= slack))
      return std::numeric_limits<double>::infinity();
  }
  return 4 * std::numeric_limits<double>::epsilon() * largest * std::sqrt(double(outputs.size()));
}

llvm::Error Searcher::descend(Vector numbers, const SearchOptions &options) {
  auto outputs = outputsOf(numbers);
  if (!outputs)
    return outputs.takeError();
  Vector missing = target - *outputs;
  double damping = 1e-6, before = missing.norm();
  for (int i = 0; i < options.steps && missing.allFinite(); ++i) {
    if (missing.norm() < result.error) {
      auto rounding = roundingOf(numbers, target - missing);
      if (!rounding)
        return rounding.takeError();
      result.error = std::min(result.error, missing.norm() + *rounding);
    }
    // Every tenth step checks whether to go on.
    if (i % 10 == 9) {
      if (missing.norm() > 0.999 * before)
        break;
      before = missing.norm();
    }
    if (numbers.size() == 0 || missing.norm() <= 1e-11 * (1 + target.norm()) || isSpent(options))
      break;
    int64_t width = std::min<int64_t>(numbers.size(), 2 * target.size() + 8);
    Eigen::MatrixXd directions(numbers.size(), width), J(target.size(), width);
    for (int64_t j = 0; j < width; ++j) {
      directions.col(j) = direction();
      constexpr double step = 1e-6;
      auto moved = outputsOf(numbers + step * directions.col(j));
      if (!moved)
        return moved.takeError();
      J.col(j) = (*moved - (target - missing)) / step;
    }
    if (!J.allFinite())
      break;
    Eigen::MatrixXd normal = J * J.transpose(); // the least-norm step: outputs are few
    double size = normal.diagonal().maxCoeff();
    bool better = false;
    for (int attempt = 0; attempt < 8 && !better;
         ++attempt, damping = std::min(damping * 10, 1e6)) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal().array() += damping * (size > 0 ? size : 1);
      Vector next = numbers + directions * (J.transpose() * damped.ldlt().solve(missing));
      auto moved = outputsOf(next);
      if (!moved)
        return moved.takeError();
      Vector left = target - *moved;
      if (left.allFinite() && left.norm() < missing.norm()) {
        numbers = std::move(next);
        missing = std::move(left);
        damping = std::max(damping / 100, 1e-14);
        better = true;
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error Searcher::search(const SearchOptions &options) {
  result.error = std::numeric_limits<double>::infinity();
  for (int restart = 0; restart < options.restarts && !isSpent(options) &&
                        result.error > 1e-11 * (1 + target.norm());
       ++restart)
    if (llvm::Error error = descend(start(restart), options))
      return error;
  return llvm::Error::success();
}

llvm::Expected<PatchSearch> ctxc::searchPatch(xf::BlockOp block, const PlanOptions &options,
                                              const Sample &sample, Weights &weights,
                                              xf::LayerOp layer, const SearchOptions &search) {
  needReference(block);
  BlockGraph graph(block);
  ZeroRange zeros(block, layer);
  Sites sites(graph, zeros, options.bindings, options.scope);
  Searcher searcher(block, sample, {weights, layer}, search.seed);
  if (llvm::Error error = searcher.prepare(Moved(graph, sites).parameters()))
    return std::move(error);
  if (llvm::Error error = searcher.search(search))
    return std::move(error);
  return searcher.result;
}
