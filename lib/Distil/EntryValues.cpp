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
  /// The changes of all heads of keys, one below the other.
  Matrix solve() const;

private:
  /// The ridge penalty, relative to the mean diagonal: as strong as so many rows, and no stronger
  /// than a part of all.
  static constexpr double ridgeRows = 6, mostRidge = 0.03;
  /// Of conjugate gradients: by how much they lessen what is left, in at most so many rounds.
  static constexpr double leastLeft = 1e-3;
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
  template <typename M> auto of(M &all, int64_t group) const {
    return all.middleRows(group * count, count);
  }

  int64_t tokens, count, repeat, heads, width; // N, m, heads of queries for one of keys, all, e
  const ParallelFor &threads;
  Matrix gram, metric, right; // A, B, and the right side
  double ridge;
  std::vector<Part> parts;
};

Equations::Equations(const ReadEntries &read, const ParallelFor &threads)
    : tokens(read.missing.rows()), count(read.weights.front().rows()),
      repeat(read.weights.front().cols() / tokens), heads(repeat * read.weights.size()),
      width(read.output.cols() / heads), threads(threads) {
  FloatMatrix weights(heads * count, tokens);
  for (int64_t head = 0; head < heads; ++head)
    of(weights, head) = read.weights[groupOf(head)].middleCols(head % repeat * tokens, tokens);
  gram = gramOf(weights, threads);
  metric = gramOf(transposedOf(read.output), threads);
  const Matrix wanted = exactProduct(weights, transposedOf(read.missing), threads);
  right = Matrix::Zero(read.weights.size() * count, width);
  double diagonal = 0;
  for (int64_t head = 0; head < heads; ++head) {
    of(right, groupOf(head)) +=
        of(wanted, head) * read.output.middleCols(head * width, width).cast<double>();
    diagonal += gram.diagonal().segment(head * count, count).sum() *
                metric.diagonal().segment(head * width, width).sum();
  }
  ridge = std::min(ridgeRows / (repeat * tokens), mostRidge) * diagonal / right.size() + 1e-300;
  for (size_t group = 0; group < read.weights.size(); ++group)
    addPart(group);
}

void Equations::addPart(int64_t group) {
  Matrix ofWeights = Matrix::Zero(count, count), ofOutput = Matrix::Zero(width, width);
  for (int64_t head = group * repeat; head < (group + 1) * repeat; ++head) {
    ofWeights += gram.block(head * count, head * count, count, count);
    ofOutput += metric.block(head * width, head * width, width, width);
  }
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> left(ofWeights), right(ofOutput / repeat);
  const Eigen::MatrixXd diagonal =
      left.eigenvalues().cwiseMax(0) * right.eigenvalues().cwiseMax(0).transpose();
  parts.push_back(
      {left.eigenvectors(), right.eigenvectors(), (diagonal.array() + ridge).inverse().matrix()});
}

Matrix Equations::multiply(const Matrix &x) const {
  std::vector<Matrix> sums(heads);
  threads(heads, [&](int64_t begin, int64_t end) {
    for (int64_t to = begin; to < end; ++to) {
      sums[to] = Matrix::Zero(count, width);
      for (int64_t from = 0; from < heads; ++from)
        sums[to] += gram.block(to * count, from * count, count, count) * of(x, groupOf(from)) *
                    metric.block(from * width, to * width, width, width);
    }
  });
  Matrix made = ridge * x;
  for (int64_t head = 0; head < heads; ++head)
    of(made, groupOf(head)) += sums[head];
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
Matrix Equations::solve() const {
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
  return solved;
}

} // namespace

std::vector<Matrix> ctxc::fitValues(const ReadEntries &read, const ParallelFor &threads) {
  const Matrix all = Equations(read, threads).solve();
  const int64_t count = read.weights.front().rows();
  std::vector<Matrix> changes;
  for (int64_t at = 0; at < all.rows(); at += count)
    changes.push_back(all.middleRows(at, count));
  return changes;
}
