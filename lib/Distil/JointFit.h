// The least change of one matrix that is exact for some rows, and grows by one.
#ifndef CTXC_LIB_DISTIL_JOINTFIT_H
#define CTXC_LIB_DISTIL_JOINTFIT_H

#include "Regression.h"

namespace ctxc {

/// ΔW = Σ_j l_j q_jᵀ in float64, in the orientation (outputs, inputs). The q_j are orthonormal, and
/// span what the rows up to j read; l_j is 0 where nothing was missing.
class JointFit {
public:
  JointFit(int64_t outputs, int64_t inputs) : outputs(outputs), inputs(inputs) {}
  /// A change that was read from a file, and does not grow. `left`: outputs × rank, `right`:
  /// rank × inputs.
  JointFit(const Matrix &left, const Matrix &right);

  /// ΔW h for each row h of `data`.
  Matrix products(const FloatMatrix &data) const;
  /// Lets ΔW also write `missing` for `data`, beside what it writes already; O(width · rank).
  /// `scale`: the length of a product, to which what is missing is compared; `least`: the distance
  /// from the span of the rows before it, relative to its length, below which a row depends on
  /// them. One that depends on them, and that they already serve, adds no rank. False, with nothing
  /// changed, where it depends on them and something is missing: no change serves all.
  bool grow(const Vector &data, const Vector &missing, double scale, double least);

  int64_t width() const { return inputs; }
  /// How many rows it has seen, and which of those before `row` is most nearly parallel to it.
  size_t rows() const { return coefficients.size(); }
  struct Nearest {
    size_t row = 0;
    bool isSame = false; ///< but for its length and for roundings
  };
  Nearest nearestTo(size_t row) const;
  double leastDistance() const { return independence; } ///< JointSite::independence
  double norm() const;                                  ///< ‖ΔW‖

  int64_t rank() const { return q.size() / inputs; }
  /// From rank `first` on, without the columns of zeros.
  Matrix left(int64_t first = 0) const, right(int64_t first = 0) const;
  /// What stands in the place of left() in the change that comes nearest to what this one writes
  /// for all rows, with a ridge penalty (JointRequest::ridges) of which the `counted` rows say how
  /// strong it is.
  Matrix ridgedLeft(double strength, llvm::function_ref<bool(size_t row)> counted) const;
  /// The singular values of ΔW, descending, and JointSite::shares of each row.
  std::vector<double> spectrum() const;
  std::vector<std::vector<double>> shares() const;

private:
  using Rows = Eigen::Map<const Matrix>;
  Rows basis() const { return Rows(q.data(), rank(), inputs); }
  Rows written() const { return Rows(l.data(), rank(), outputs); }
  std::vector<int64_t> used(int64_t first = 0) const;

  int64_t outputs, inputs;
  std::vector<double> q, l;         ///< q_j and l_j, one after the other
  std::vector<Vector> coefficients; ///< of each row h: Qᵀ h, with the q_j that there were
  std::vector<double> rests;        ///< of each row: its distance from their span
  double independence = 1;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_JOINTFIT_H
