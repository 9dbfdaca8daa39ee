#include "EntryValues.h"
#include "Products.h"

using namespace ctxc;

namespace {

/// The normal equations. With A = Π Πᵀ of the weights of all heads of queries and B = Wᵀ W of the
/// output matrix, the changes X of the heads of keys go to Σ A_hh' X_h' B_h'h, over all heads h'
/// and the heads h that read the same keys, where X_h' is the change of the keys that h' reads.
class Equations {
public:
  Equations(const ReadEntries &read, const ParallelFor &threads);
  ValuesFit solve() const;

private:
  /// The ridge penalty, relative to the mean diagonal: as strong as so many rows, and no stronger
  /// than a part of all.
  static constexpr double ridgeRows = 6, mostRidge = 0.03;
  /// Of conjugate gradients: by how much they lessen what is left, in at most so many rounds.
  static constexpr double leastLeft = 1e-2;
  static constexpr int mostRounds = 100;

  /// Of a head of keys, the equations without the other heads, as if all that read it had the mean
  /// of its A and of its B: these are diagonal by `left` and `right`.
  struct Part {
    Matrix left, right, inverse;
  };

  Matrix multiply(const Matrix &x) const;
  Matrix precondition(const Matrix &x) const;
  void addPart(int64_t group);
  int64_t groupOf(int64_t head) const { return head / repeat; }
  template <typename M> auto of(M &all, int64_t number) const {
    return all.middleRows(number * count, count);
  }

  const int64_t heads, repeat, count, width; // H, heads of queries for one of keys, m, e
  const FloatMatrix &metric;                 // B
  const ParallelFor &threads;
  const FloatMatrix gram; // A
  Matrix right;           // the right side
  double ridge;
  std::vector<Part> parts;
};

Equations::Equations(const ReadEntries &read, const ParallelFor &threads)
    : heads(read.heads), repeat(heads / read.groups), count(read.weights.rows() / heads),
      width(read.output.cols() / heads), metric(read.metric), threads(threads),
      gram(gramOf(read.weights, threads).cast<float>()),
      right(Matrix::Zero(read.groups * count, width)) {
  const Matrix wanted = exactProduct(read.weights, read.missing, threads);
  double diagonal = 0;
  for (int64_t head = 0; head < heads; ++head) {
    of(right, groupOf(head)) +=
        of(wanted, head) * read.output.middleCols(head * width, width).cast<double>();
    diagonal += gram.diagonal().segment(head * count, count).sum() *
                metric.diagonal().segment(head * width, width).sum();
  }
  const double rows = repeat * read.missing.cols();
  ridge = std::min(ridgeRows / rows, mostRidge) * diagonal / right.size() + 1e-300;
  for (int64_t group = 0; group < read.groups; ++group)
    addPart(group);
}

void Equations::addPart(int64_t group) {
  Matrix ofWeights = Matrix::Zero(count, count), ofOutput = Matrix::Zero(width, width);
  for (int64_t head = group * repeat; head < (group + 1) * repeat; ++head) {
    ofWeights += gram.block(head * count, head * count, count, count).cast<double>();
    ofOutput += metric.block(head * width, head * width, width, width).cast<double>();
  }
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> left(ofWeights), right(ofOutput / repeat);
  const Eigen::MatrixXd diagonal =
      left.eigenvalues().cwiseMax(0) * right.eigenvalues().cwiseMax(0).transpose();
  parts.push_back(
      {left.eigenvectors(), right.eigenvectors(), (diagonal.array() + ridge).inverse().matrix()});
}

Matrix Equations::multiply(const Matrix &x) const {
  const FloatMatrix given = x.cast<float>();
  const int64_t rows = heads * count, columns = heads * width;
  FloatMatrix turned(rows, columns), own(rows, width), summed(count, width); // X_h' B_h'h
  for (int64_t head = 0; head < heads; ++head)
    ctxc::multiply(of(given, groupOf(head)).data(), count, &metric(head * width, 0), columns, width,
                   of(turned, head).data(), threads);
  Matrix made = ridge * x;
  for (int64_t head = 0; head < heads; ++head) {
    own = turned.middleCols(head * width, width);
    ctxc::multiply(of(gram, head).data(), count, own.data(), width, rows, summed.data(), threads);
    of(made, groupOf(head)) += summed.cast<double>();
  }
  return made;
}

Matrix Equations::precondition(const Matrix &x) const {
  Matrix made(x.rows(), x.cols());
  for (auto [group, part] : llvm::enumerate(parts)) {
    const Matrix turned = part.left.transpose() * of(x, group) * part.right;
    of(made, group) = part.left * turned.cwiseProduct(part.inverse) * part.right.transpose();
  }
  return made;
}

/// By conjugate gradients.
ValuesFit Equations::solve() const {
  Matrix solved = Matrix::Zero(right.rows(), right.cols()), rest = right, step = precondition(rest);
  double left = rest.cwiseProduct(step).sum();
  const double enough = leastLeft * leastLeft * left;
  for (int round = 0; round < mostRounds && left > enough; ++round) {
    const Matrix turned = multiply(step);
    const double length = left / step.cwiseProduct(turned).sum();
    solved += length * step;
    rest -= length * turned;
    const Matrix next = precondition(rest);
    const double last = std::exchange(left, rest.cwiseProduct(next).sum());
    step = next + left / last * step;
  }
  // The equations times `solved` are `right` less what is left, and have the penalty in them.
  ValuesFit fit{{}, solved.cwiseProduct(right + rest + ridge * solved).sum()};
  for (size_t group = 0; group < parts.size(); ++group)
    fit.changes.push_back(of(solved, group));
  return fit;
}

} // namespace

ValuesFit ctxc::fitValues(const ReadEntries &read, const ParallelFor &threads) {
  return Equations(read, threads).solve();
}
