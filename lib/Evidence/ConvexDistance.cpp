#include "ConvexDistance.h"
#include <Eigen/QR>
#include <limits>

using namespace ctxc;

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Sets
//===----------------------------------------------------------------------===//

ConvexSet ConvexSet::free(int64_t size) {
  ConvexSet set;
  set.low = Vector::Constant(size, -infinity);
  set.high = Vector::Constant(size, infinity);
  return set;
}

Vector ConvexSet::project(const Vector &x) const {
  if (kind == Box)
    return x.cwiseMax(low).cwiseMin(high);
  Vector y = x - normals * (normals.transpose() * x);
  double norm = y.norm();
  return norm > radius ? Vector(y * (radius / norm)) : y;
}

double ConvexSet::support(const Vector &w, const Vector &tolerance) const {
  if (kind == Ball)
    return radius * (w - normals * (normals.transpose() * w)).norm();
  double sum = 0;
  for (int64_t i = 0; i < w.size(); ++i) {
    double side = w[i] > 0 ? high[i] : low[i];
    if (w[i] == 0 || (std::isinf(side) && std::abs(w[i]) <= tolerance[i]))
      continue;
    sum += w[i] * side;
  }
  return sum;
}

static Vector columnNorms(const Map &map) {
  Vector norms(map.cols());
  for (int64_t j = 0; j < map.cols(); ++j)
    norms[j] = map.col(j).norm();
  return norms;
}

double ConvexSum::support(const Vector &w) const {
  double sum = w.dot(constant);
  // A direction counts as orthogonal to a column by their angle: a small column with an open side
  // reaches as far as a large one.
  for (const ConvexTerm &term : terms)
    sum += term.set.support(term.map.transpose() * w, 1e-11 * w.norm() * columnNorms(term.map));
  return sum;
}

//===----------------------------------------------------------------------===//
// Distance
//===----------------------------------------------------------------------===//

namespace {

/// The directions of the columns of a box's map whose entries are free.
Eigen::MatrixXd freeColumns(const ConvexTerm &term) {
  const ConvexSet &set = term.set;
  const Vector norms = columnNorms(term.map);
  llvm::SmallVector<int64_t> entries;
  if (set.kind == ConvexSet::Box)
    for (int64_t i = 0; i < set.low.size(); ++i)
      if (std::isinf(set.low[i]) && std::isinf(set.high[i]) && norms[i] > 0)
        entries.push_back(i);
  Eigen::MatrixXd columns(term.map.rows(), entries.size());
  for (size_t j = 0; j < entries.size(); ++j)
    columns.col(j) = term.map.col(entries[j]) / norms[entries[j]];
  return columns;
}

/// Projects onto the orthogonal complement of the span of the free parts.
class Complement {
public:
  explicit Complement(const ConvexSum &sum) : basis(sum.constant.size(), 0) {
    for (const ConvexTerm &term : sum.terms)
      add(freeColumns(term));
  }
  bool isZero() const { return basis.cols() == basis.rows(); }
  Vector project(const Vector &x) const {
    // Twice, so that the result is orthogonal to the last digit.
    Vector y = x - basis * (basis.transpose() * x);
    return y - basis * (basis.transpose() * y);
  }

private:
  void add(const Eigen::MatrixXd &columns) {
    if (columns.cols() == 0 || isZero())
      return;
    Eigen::MatrixXd all(basis.rows(), basis.cols() + columns.cols());
    all << basis, columns;
    Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(all);
    qr.setThreshold(1e-10);
    basis = Eigen::MatrixXd(qr.householderQ() *
                            Eigen::MatrixXd::Identity(all.rows(), std::min(all.rows(), qr.rank())));
  }
  Eigen::MatrixXd basis;
};

/// min ½‖r‖², r = P (t − c − Σ A_k s_k) over s_k ∈ S_k, by FISTA with restarts.
class ProjectedGradient {
public:
  ProjectedGradient(const ConvexSum &sum, const Vector &target)
      : sum(sum), target(target), complement(sum) {}

  Separation solve();

private:
  using Parts = llvm::SmallVector<Vector>;
  Vector residual(const Parts &parts) const {
    Vector r = target - sum.constant;
    for (size_t k = 0; k < sum.terms.size(); ++k)
      r -= sum.terms[k].map * parts[k];
    return complement.project(r);
  }
  double squaredNorm() const;
  Parts step(const Parts &from, double size) const;
  Separation certify(const Vector &r) const;

  const ConvexSum &sum;
  const Vector &target;
  Complement complement;
};

/// ‖P [A_1 A_2 …]‖², by the power method, rounded up.
double ProjectedGradient::squaredNorm() const {
  Vector x = Vector::LinSpaced(target.size(), 1, 2).normalized();
  double norm = 0;
  for (int i = 0; i < 100; ++i) {
    x = complement.project(x);
    Vector y = Vector::Zero(x.size());
    for (const ConvexTerm &term : sum.terms)
      y += term.map * Vector(term.map.transpose() * x);
    norm = y.norm();
    if (norm == 0)
      return 1;
    x = y / norm;
  }
  return 1.1 * norm;
}

ProjectedGradient::Parts ProjectedGradient::step(const Parts &from, double size) const {
  Vector r = residual(from);
  Parts to;
  for (size_t k = 0; k < sum.terms.size(); ++k) {
    const ConvexTerm &term = sum.terms[k];
    to.push_back(term.set.project(from[k] + size * (term.map.transpose() * r)));
  }
  return to;
}

/// The distance that the residual, as a direction, proves.
Separation ProjectedGradient::certify(const Vector &r) const {
  Separation result;
  result.attained = r.norm();
  if (result.attained == 0)
    return result;
  Vector w = r / result.attained;
  double beyond = w.dot(target) - sum.support(w);
  if (!(beyond > 0))
    return result;
  result.distance = beyond;
  result.direction = w;
  return result;
}

Separation ProjectedGradient::solve() {
  if (complement.isZero())
    return {};
  Parts x;
  for (const ConvexTerm &term : sum.terms)
    x.push_back(term.set.project(Vector::Zero(term.map.cols())));
  Separation best = certify(residual(x));
  double size = 1 / squaredNorm(), momentum = 1, last = residual(x).norm();
  double good = 1e-12 * (1 + target.norm());
  Parts y = x;
  for (int i = 1; i <= 20000 && best.attained - best.distance > good; ++i) {
    Parts next = step(y, size);
    double norm = residual(next).norm();
    if (norm > last) { // overshot: start again from the last good point
      if (momentum == 1)
        break;
      momentum = 1;
      y = x;
      continue;
    }
    double following = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    for (size_t k = 0; k < y.size(); ++k)
      y[k] = next[k] + ((momentum - 1) / following) * (next[k] - x[k]);
    momentum = following;
    x = std::move(next);
    last = norm;
    if (i % 16 && i > 16)
      continue;
    Separation now = certify(residual(x));
    if (now.distance >= best.distance) {
      best.distance = now.distance;
      best.direction = now.direction;
    }
    best.attained = std::min(best.attained, now.attained);
  }
  return best;
}

} // namespace

Separation ctxc::separate(const ConvexSum &sum, const Vector &target) {
  return ProjectedGradient(sum, target).solve();
}
