// The closed form of one site: the change of a matrix, of low rank, with which its product is what
// it should be, on the average over rows. docs/distil-method.md has the formulas.
#ifndef CTXC_LIB_DISTIL_REGRESSION_H
#define CTXC_LIB_DISTIL_REGRESSION_H

#include "ctxc/Distil/Distil.h"
#include "llvm/Support/Error.h"
#include <Eigen/Dense>

namespace ctxc {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// What is known of a site, N rows of each.
struct SiteRows {
  FloatMatrix data;    ///< h: N × inputs
  FloatMatrix product; ///< W h, with the matrix as it is: N × outputs
  FloatMatrix target;  ///< of W h; of m ⊙ Norm(W h) where a norm follows: N × outputs
  Vector weights;      ///< of the rows, positive
  /// The rows that λ is computed without, ascending: where attention rests on a token, what its
  /// row reads is so long that λ would hold back what all others ask for.
  std::vector<int64_t> sinks;
};

/// What is known of the last matrices of a mixture's experts, N rows of each; a row goes through k
/// of them.
struct ExpertRows {
  FloatMatrix data;          ///< h of each: N × (k · inputs)
  std::vector<int> selected; ///< which they are, ascending: N × k
  FloatMatrix gates;         ///< by how much each counts: N × k
  /// What the matrix of shared experts reads, times what its product is multiplied by: N × its
  /// inputs; empty if there is none.
  FloatMatrix shared;
  FloatMatrix product;        ///< the sum, with the matrices as they are: N × outputs
  FloatMatrix target;         ///< of the sum: N × outputs
  Vector weights;             ///< of the rows, positive
  std::vector<int64_t> sinks; ///< as SiteRows'
};

/// The change left right of W, in the orientation (outputs, inputs), and that of m.
struct SiteFit {
  Matrix left;  ///< outputs × rank
  Matrix right; ///< rank × inputs
  Vector scale; ///< empty where no norm follows, or its scale stays
};

/// The change left right of a matrix, in the orientation (outputs, inputs), as an adapter has it:
/// in that in which `matrix` is stored, under `name`.
MatrixChange changeOf(const Matrix &left, const Matrix &right, const SplitMatrix &matrix,
                      const std::string &name);

/// min Σ_t w_t ‖ΔW h_t − y_t‖² + λ ‖ΔW‖², λ = λ₀ ‖S'‖²_F / tr S' with S' = Σ_t w_t h_t h_tᵀ over
/// all rows but `sinks` (all, where there are no others). By the N × N dual where there are fewer
/// rows than inputs: the answer is the same.
class Ridge {
public:
  /// Errors: S is singular and λ is zero; numbers that are not finite.
  static llvm::Expected<Ridge> make(const FloatMatrix &data, const Vector &weights,
                                    llvm::ArrayRef<int64_t> sinks, double lambda0,
                                    const ParallelFor &threads);

  /// Solves for targets y (N × outputs).
  void solve(const Matrix &targets);
  /// ΔW h of each row: N × outputs.
  Matrix predictions() const;
  /// The truncation of ΔW to rank `rank` that loses least of ‖diag(metric) ΔW (S + λI)^½‖; all of
  /// it where the rank is as large as that of any such matrix, or 0.
  SiteFit truncate(const Vector &metric, int64_t rank) const;

private:
  explicit Ridge(const ParallelFor &threads) : threads(&threads) {}
  template <typename Rows> Matrix multiply(const Rows &a, const Rows &b) const;

  const ParallelFor *threads;
  bool isDual = false;
  double lambda = 0;
  Vector roots;     ///< √w
  FloatMatrix data; ///< √w h: N × inputs
  Matrix factor;    ///< Cholesky's, of √w h hᵀ √w + λI in the dual, else of S + λI
  Matrix targets;   ///< √w y, transposed: outputs × N
  Matrix moments;   ///< Σ w y hᵀ: outputs × inputs; not in the dual
  /// Targets or moments times the inverse: in the dual ΔW = solution √w h, else ΔW itself.
  Matrix solution;
};

/// The rows from 0 to below `count` that are none of `sinks`; all where every row is one.
std::vector<int64_t> withoutSinks(int64_t count, llvm::ArrayRef<int64_t> sinks);

/// λ = λ₀ ‖gram‖²_F / tr gram. Errors: as Ridge::make.
llvm::Expected<double> penaltyOf(const Matrix &gram, double lambda0);

/// Adds λ to the diagonal of a Gram matrix, and replaces it by Cholesky's factor. Errors: as
/// Ridge::make.
llvm::Error factorWith(Matrix &gram, double lambda, const ParallelFor &threads);

/// The leading eigenvectors, as columns, of a symmetric matrix without negative eigenvalues. The
/// answer is always the same.
Matrix leadingVectors(const Matrix &matrix, int64_t count, const ParallelFor &threads);

/// The strength of the ridge penalty where `tokens` of text are fitted: λ is that of a few hundred
/// tokens. Relative to the data it would grow with them, as S does, and hold the change back by as
/// much as before, however much the data say.
double ridgeStrength(const FitOptions &options, int64_t tokens);

/// The change with which W h is the target.
llvm::Expected<SiteFit> fitProduct(const SiteRows &rows, const FitOptions &options,
                                   const ParallelFor &threads);

/// The changes of the experts' matrices with which Σ_j g_j W_{sel_j} h_j is the target: the least
/// squares of fitProduct over all of them together, since Σ_j g_j ΔW_{sel_j} h_j is a product with
/// one matrix that has them side by side. The rank counts over the experts that a row goes through:
/// each has ⌈rank · k / experts⌉, and loses least of its own rows. Empty for an expert without
/// rows. Behind them is the matrix of shared experts, if there is one, with the whole rank.
llvm::Expected<std::vector<SiteFit>> fitExperts(const ExpertRows &rows, int64_t experts,
                                                const FitOptions &options,
                                                const ParallelFor &threads);

/// The changes with which m ⊙ Norm(W h) is the target, by Gauss–Newton rounds; `m` is the scale as
/// it multiplies.
llvm::Expected<SiteFit> fitThroughNorm(const SiteRows &rows, const Vector &m, double eps,
                                       const FitOptions &options, const ParallelFor &threads);

/// What a site's matrix should write, or the scale behind it, a row for each of those that `rowsOf`
/// gives of a value: of the goal in the full run, of the chain's other values in the run that is to
/// reach it.
llvm::Expected<FloatMatrix>
targetOf(const SplitModel &model, size_t site,
         llvm::function_ref<FloatMatrix(mlir::Value value, bool isGoal)> rowsOf);

/// The scale of the norm behind the site's matrix, as it multiplies. Errors: it cannot be read.
llvm::Expected<Vector> normScaleOf(const SplitModel &model, const SplitSite &site);

/// A product near `from` whose m ⊙ Norm is as near to `target` as that can be: no length is left to
/// a norm's result.
Vector nearestThroughNorm(const Vector &target, const Vector &from, const Vector &m, double eps,
                          const FitOptions &options);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_REGRESSION_H
