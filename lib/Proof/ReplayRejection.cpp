// Rejected claims in numbers. Past its barriers the block is affine in them, so that whatever
// patches do its outputs stay in
//
//     { T + Σ A_k (s_k − r_k) : s_k in the image of barrier k },
//
// where r_k is barrier k in the reduced run. For a direction w, ‖w‖ = 1, no output
// there exceeds the support h(w); the full run's T_C with ⟨w, T_C⟩ > h(w) is out of reach,
// by at least the difference. The direction is searched for; what it proves is computed.
#include "Claims.h"
#include "Numbers.h"
#include "ctxc/Support/Error.h"
#include <Eigen/QR>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;
using namespace ctxc::reference;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// A barrier in numbers.
struct Image {
  Eigen::MatrixXd map; ///< A_k
  Vector base;         ///< r_k
  double radius = -1;  ///< of a ball; negative for a box
  double low = -infinity, high = infinity;

  bool isFree() const { return radius < 0 && low == -infinity && high == infinity; }
  Vector project(const Vector &s) const {
    if (radius < 0)
      return s.cwiseMax(low).cwiseMin(high);
    return s.norm() > radius ? Vector(s * (radius / s.norm())) : s;
  }
  /// sup ⟨Aᵀw, s⟩ over the image, ‖w‖ = 1. Where a side is open, w counts as orthogonal to a column
  /// that it is orthogonal to but for a rounding, however small the column is.
  double support(const Vector &w) const {
    const Vector g = map.transpose() * w;
    if (radius >= 0)
      return radius * g.norm();
    constexpr double rounding = 1e-10;
    double sum = 0;
    for (int64_t j = 0; j < g.size(); ++j) {
      double x = g[j], side = x > 0 ? high : low;
      if (x != 0 && !(std::isinf(side) && std::abs(x) <= rounding * map.col(j).norm()))
        sum += x * side;
    }
    return sum;
  }
};

/// The set that patches reach.
class Reach {
public:
  Reach(std::vector<Image> images, Vector constant)
      : images(std::move(images)), constant(std::move(constant)) {}

  /// The best lower bound found of the distance of `target`; 0 where none is found.
  double distanceOf(const Vector &target) const;

private:
  using Columns = Eigen::MatrixXd;
  /// An orthonormal basis of what the columns span.
  static Columns basisOf(const Columns &columns);
  Vector without(const Columns &basis, const Vector &x) const {
    Vector y = x - basis * (basis.transpose() * x);
    return y - basis * (basis.transpose() * y); // to the last digit
  }
  double provenBy(const Vector &direction, const Vector &target) const;
  double polished(const std::vector<Vector> &at, const Vector &target) const;

  std::vector<Image> images;
  Vector constant; ///< T − Σ A_k r_k
};

} // namespace

Eigen::MatrixXd Reach::basisOf(const Columns &columns) {
  if (columns.cols() == 0)
    return Columns(columns.rows(), 0);
  Columns directions = columns; // a small column spans as much as a large one
  for (auto column : directions.colwise())
    if (double norm = column.norm(); norm > 0)
      column /= norm;
  Eigen::ColPivHouseholderQR<Columns> qr(directions);
  qr.setThreshold(1e-10);
  return qr.householderQ() * Columns::Identity(columns.rows(), qr.rank());
}

double Reach::provenBy(const Vector &direction, const Vector &target) const {
  double norm = direction.norm();
  if (!(norm > 1e-12 * (1 + target.norm())))
    return 0;
  Vector w = direction / norm;
  double beyond = w.dot(target - constant);
  for (const Image &image : images)
    beyond -= image.support(w);
  return beyond > 0 ? beyond : 0;
}

/// Entries of boxes that are between their sides count as free: then the direction is
/// exact if the right entries are free.
double Reach::polished(const std::vector<Vector> &at, const Vector &target) const {
  Vector rest = target - constant;
  std::vector<Vector> columns;
  for (auto [image, s] : llvm::zip_equal(images, at)) {
    rest -= image.map * s;
    for (int64_t i = 0; image.radius < 0 && i < s.size(); ++i)
      if (s[i] > image.low + 1e-9 && s[i] < image.high - 1e-9)
        columns.push_back(image.map.col(i));
  }
  Columns inner(target.size(), columns.size());
  for (size_t j = 0; j < columns.size(); ++j)
    inner.col(j) = columns[j];
  return provenBy(without(basisOf(inner), rest), target);
}

/// Accelerated projected gradients on ½‖target − y‖² over the images that bind, in the
/// complement of the free directions.
double Reach::distanceOf(const Vector &target) const {
  Columns open(target.size(), 0);
  for (const Image &image : images)
    if (image.isFree()) {
      Columns wider(open.rows(), open.cols() + image.map.cols());
      wider << open, image.map;
      open = std::move(wider);
    }
  Columns basis = basisOf(open);
  if (basis.cols() == target.size())
    return 0;
  std::vector<Vector> x, y;
  double size = 0;
  for (const Image &image : images) {
    x.push_back(image.project(Vector::Zero(image.map.cols())));
    if (!image.isFree()) // an upper bound of the squared spectral norm
      size += image.map.cwiseAbs().rowwise().sum().maxCoeff() *
              image.map.cwiseAbs().colwise().sum().maxCoeff();
  }
  y = x;
  auto residual = [&](const std::vector<Vector> &at) {
    Vector r = target - constant;
    for (auto [image, s] : llvm::zip_equal(images, at))
      if (!image.isFree())
        r -= image.map * s;
    return without(basis, r);
  };
  double best = provenBy(residual(x), target), momentum = 1;
  for (int i = 1; size > 0 && i <= 4000; ++i) {
    Vector r = residual(y);
    double next = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    for (size_t k = 0; k < images.size(); ++k) {
      if (images[k].isFree())
        continue;
      Vector moved = images[k].project(y[k] + images[k].map.transpose() * r / size);
      y[k] = moved + ((momentum - 1) / next) * (moved - x[k]);
      x[k] = std::move(moved);
    }
    momentum = next;
    if (i % 50)
      continue;
    double norm = residual(x).norm();
    best = std::max({best, provenBy(residual(x), target), polished(x, target)});
    if (norm - best <= 1e-10 * (1 + norm))
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The tail: from the barriers to the outputs
//===----------------------------------------------------------------------===//

namespace {
class Tail {
public:
  Tail(const Structure &structure, const Flow &flow, const Claim &claim, const BlockRun &base,
       Weights &weights, ArrayRef<int64_t> outputs)
      : structure(structure), flow(flow), claim(claim), text(structure.block), base(base),
        weights(weights), outputs(outputs) {}

  llvm::Expected<Reach> measure();

private:
  llvm::Expected<Matrix> outputsAt(const Matrix &points);
  void addImages(const Barrier &barrier, Image image, Vector &constant,
                 std::vector<Image> &images) const;

  const Structure &structure;
  const Flow &flow;
  const Claim &claim;
  BlockText text;
  const BlockRun &base;
  Weights &weights;
  ArrayRef<int64_t> outputs;
  SmallVector<Value> barriers;
  llvm::StringMap<Value> parameters; ///< barriers that are parameters, by name
};
} // namespace

/// The outputs for each row of `points`, which has the barriers' values side by side.
llvm::Expected<Matrix> Tail::outputsAt(const Matrix &points) {
  int64_t rows = points.rows(), at = 0;
  BlockState none;
  BlockRun tail(weights, structure.layer, Numbers::contextSize, rows, none,
                base.environment.parameters);
  std::fill(tail.positions.begin(), tail.positions.end(), Numbers::contextSize);
  llvm::DenseMap<Value, Matrix> held;
  for (Value barrier : barriers) {
    held[barrier] = points.middleCols(at, sizeOf(barrier));
    at += sizeOf(barrier);
  }
  auto heldFor = [&](Operation *op, Value operand) -> const Matrix * {
    auto param = operand.getDefiningOp<xf::ParamOp>();
    if (param && !flow.mayChange(op, operand))
      return nullptr;
    if (param)
      operand = parameters.lookup(param.getName());
    auto found = operand ? held.find(operand) : held.end();
    return found == held.end() ? nullptr : &found->second;
  };
  for (Operation &op : flow.body().without_terminator()) {
    if (isa<xf::ParamOp>(op) ||
        llvm::none_of(op.getOperands(), [&](Value v) { return heldFor(&op, v); }) ||
        llvm::any_of(op.getResults(), [&](Value v) { return held.contains(v); }))
      continue;
    if (isa<xf::ContextualOpInterface>(op))
      return errorAt(&op, "reads the context past a barrier");
    for (Value operand : op.getOperands()) {
      if (const Matrix *own = heldFor(&op, operand))
        tail.values.set(operand, *own);
      else if (base.values.isShared(operand))
        tail.values.set(operand, base.values.stored(operand, 0));
      else
        tail.values.set(operand, Matrix(base.values.rows(operand).replicate(rows, 1)));
    }
    auto meaning = dyn_cast<ReferenceOpInterface>(op);
    if (!meaning)
      return errorAt(&op, "has no meaning in the reference");
    if (llvm::Error error = meaning.evaluate(tail.values))
      return std::move(error);
    for (Value result : op.getResults())
      held[result] = tail.values.rows(result);
  }
  Matrix all(rows, 0);
  for (int64_t i : outputs) {
    Value output = flow.outputs()[i];
    auto found = held.find(output);
    Matrix own =
        found == held.end() ? Matrix(base.values.rows(output).replicate(rows, 1)) : found->second;
    Matrix wider(rows, all.cols() + own.cols());
    wider << all, own;
    all = std::move(wider);
  }
  return all;
}

/// Adds the set of `barrier`, which `image` has as that of a box without sides.
void Tail::addImages(const Barrier &barrier, Image image, Vector &constant,
                     std::vector<Image> &images) const {
  int64_t n = image.map.cols();
  Eigen::MatrixXd normal = Eigen::MatrixXd::Ones(n, 1);
  if (barrier.image == "half-space")
    normal = base.values.rows(text.lookup(barrier.normal)).row(0).transpose();
  if ((barrier.image != "plane" && barrier.image != "half-space") || normal.isZero(0))
    return images.push_back(std::move(image));
  if (barrier.image == "plane")
    constant += image.map.rowwise().sum() * (barrier.total.value_or(0) / double(n));
  // Along the normal, and in the directions that are orthogonal to it.
  Eigen::MatrixXd map = image.map;
  Eigen::MatrixXd q = Eigen::HouseholderQR<Eigen::MatrixXd>(normal).householderQ() *
                      Eigen::MatrixXd::Identity(n, n);
  image.map = map * q.rightCols(n - 1);
  images.push_back(image);
  if (barrier.image == "half-space") {
    image.map = map * normal;
    image.low = 0;
    images.push_back(std::move(image));
  }
}

/// A_k and r_k of every barrier; the tail must be affine in them together.
llvm::Expected<Reach> Tail::measure() {
  int64_t n = 0;
  for (const Barrier &barrier : claim.behind) {
    Value value = text.lookup(barrier.value);
    barriers.push_back(value);
    n += sizeOf(value);
    if (auto param = value.getDefiningOp<xf::ParamOp>())
      parameters[param.getName()] = value;
  }
  if (constexpr int64_t most = 16384; n > most)
    return makeError("the barriers have " + llvm::Twine(n) + " entries, more than " +
                     llvm::Twine(most));
  Vector point(n);
  int64_t at = 0;
  for (Value barrier : barriers) {
    point.segment(at, sizeOf(barrier)) = base.values.rows(barrier).row(0);
    at += sizeOf(barrier);
  }
  // Beside a large constant a small column would be rounded away.
  constexpr double probe = 0x1p100;
  Random random(n);
  Matrix rows = Matrix::Zero(n + 3, n);
  rows.topRows(n).diagonal().setConstant(probe);
  rows.row(n + 1) = random.normal(1, n);
  rows.row(n + 2) = 100 * random.normal(1, n);
  auto results = outputsAt(rows);
  if (!results)
    return results.takeError();
  Vector constant = results->row(n);
  Eigen::MatrixXd map = (results->topRows(n).rowwise() - results->row(n)).transpose() / probe;
  for (int64_t i = n + 1; n > 0 && i < n + 3; ++i) {
    Vector expected = constant + map * rows.row(i).transpose();
    double off = (results->row(i).transpose() - expected).cwiseAbs().maxCoeff();
    if (!(off <= 1e-8 * (1 + expected.cwiseAbs().maxCoeff() + rows.row(i).cwiseAbs().maxCoeff())))
      return makeError("the outputs are not affine in the barriers");
  }
  std::vector<Image> images;
  at = 0;
  for (auto [barrier, value] : llvm::zip_equal(claim.behind, barriers)) {
    Image image;
    image.map = map.middleCols(at, sizeOf(value));
    image.base = point.segment(at, sizeOf(value));
    if (barrier.image == "ball")
      image.radius = barrier.radius.value_or(0);
    image.low = barrier.low.value_or(-infinity);
    image.high = barrier.high.value_or(infinity);
    at += sizeOf(value);
    addImages(barrier, std::move(image), constant, images);
  }
  return Reach(std::move(images), constant);
}

llvm::Expected<BeyondReach> proof::distanceBeyondReach(const Structure &structure,
                                                       const Claim &claim, StringRef sites,
                                                       const Cause &cause) {
  needReference(structure.block);
  Flow flow(structure, sites);
  Numbers numbers(structure, flow, cause.target.seed);
  if (llvm::Error error = numbers.scale(cause.target.scaled, cause.target.factor))
    return std::move(error);
  auto full = numbers.full();
  if (!full)
    return full.takeError();
  auto reduced = numbers.reduced();
  if (!reduced)
    return reduced.takeError();
  Vector target = numbers.outputs(**full, cause.outputs);
  BeyondReach found{0, (target - numbers.outputs(**reduced, cause.outputs)).norm()};
  // Where what reaches the outputs is bounded, it makes no difference how small a factor is.
  std::string rule = ruleOfBarriers(structure, claim, sites, cause.outputs);
  bool isBounded = rule == "bounded-output" || rule == "nothing-reaches-output";
  auto facts = [&](Value value) -> const xf::Facts & { return flow.facts(value); };
  for (const BlockRun *run : {full->get(), reduced->get()})
    if (auto [large, small] = reference::resolutionOf(structure.block, facts, run->values);
        !large || !(small || isBounded))
      return found;
  if (auto mixed = mixedOutputs(flow, cause.outputs); mixed && cause.outputs.size() > 1) {
    found.distance = distanceOf(*mixed, **reduced, target, cause.outputs.size());
  } else {
    auto reach =
        Tail(structure, flow, claim, **reduced, numbers.weights(), cause.outputs).measure();
    if (!reach)
      return reach.takeError();
    found.distance = reach->distanceOf(target);
  }
  if (found.distance <= 1e-9 * (1 + target.norm())) // within rounding errors
    found.distance = 0;
  return found;
}

std::string proof::tooLargeToReject(const Structure &structure, const CheckOptions &options) {
  xf::BlockOp block = structure.block;
  int64_t count = countNumbers(block), entries = 0;
  for (Value output : block.getBody().front().getTerminator()->getOperands())
    entries += sizeOf(output);
  if (count > options.numbers)
    return std::to_string(count) + " numbers are more than " + std::to_string(options.numbers);
  if (entries > options.outputs)
    return std::to_string(entries) + " entries of outputs are more than " +
           std::to_string(options.outputs);
  return "";
}

Replay proof::replayRejection(Subject &s, const CheckOptions &options) {
  Replay replay;
  replay.skipped = tooLargeToReject(s.structure, options);
  if (!replay.skipped.empty())
    return replay;
  replay.done = true;
  for (const Cause &cause : s.claim.causes) {
    auto found = distanceBeyondReach(s.structure, s.claim, s.proof.sites, cause);
    if (!found) {
      s.wrong("replay: " + llvm::toString(found.takeError()));
      continue;
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "causes: distance: found " << cause.target.distance << ", expected " << found->distance;
    if (found->distance == 0)
      s.wrong(text + ": what the context makes of the output may be within reach");
    else if (std::abs(found->distance - cause.target.distance) > 1e-4 * found->distance)
      s.wrong(text);
    replay.distance =
        replay.distance > 0 ? std::min(replay.distance, found->distance) : found->distance;
  }
  return replay;
}
