//===- ImplicitGradient.h - a patch as steps of gradient descent ----------===//
//
// The paper's appendix "Deriving the Implicit Update as a Gradient Step": the context grows
// token by token, C_0 (nothing) to C_n (all of it), and each token is one step of gradient descent
// on a trace loss,
//
//   L_i(Θ) = −Σ tr(Δ_W,iᵀ W) − Δ_m,iᵀ (m ⊙ h'),      Θ_{i+1} = Θ_i − H ∇L_i(Θ_i),
//
// whose sum telescopes to the patch of Algorithm 1. For a layer, v_i = A(C_i, x) with x the layer's
// input in the full run, which the patched layers below reproduce; the last token stays at
// its own position, and attends to itself and to the first i tokens. What each parameter's step
// moves to (t: its *targets*), and what is held fixed (x: what it acts on):
//
//   F, a matrix      Δ_i = W₀(z_{i+1} − z_i) z₀ᵀ                  t_i = W₀ z_i, x = z₀
//   G, a matrix      Δ_i = (v_{i+1} − v_i) h_Cᵀ   (case 1)        t_i = W₀ h_C + v_i − v₀, x = h_C
//   G, a scale after the norm of a matrix         (case 2)
//     its matrix     Δ_i = (h_target,i+1 − h_target,i) h_Cᵀ       t_i = h_target,i, x = h_C
//     the scale      Δ_i = r_{i+1} − r_i                          t_i = r_i, x = h' =
//     Norm(h_target,n)
//   a bias           Δ_i = t_{i+1} − t_i                          not in the paper
//
// with h_target,0 = W₀ h_C and r_0 = 0. h_C and h' are the terminal ones at every step: the steps
// of G's parameters do not wait for those of F. Learning rates are 1/‖x‖², and 1 ⊘ (h' ⊙ h') for
// the scale.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPERIMENTS_IMPLICITGRADIENT_H
#define CTXC_EXPERIMENTS_IMPLICITGRADIENT_H

#include "ctxc/Numerics/Update.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"

namespace ctxc::experiments {

using Vector = std::vector<double>;

/// A matrix or bias of a layer: its targets t_0 … t_n, and the vector x that it acts on.
struct ParameterTargets {
  PatchedParameter parameter;
  bool isBias = false;
  Vector x;              ///< empty for a bias
  std::vector<Vector> t; ///< n + 1 of them
  Vector current;        ///< W₀ x; for a bias the parameter itself
};

/// The input of a layer's trace, in float64: the same for every update.
struct LayerTargets {
  int64_t layer = 0;
  std::vector<ParameterTargets> parameters; ///< F, and G in case 1
  /// Case 2: the scale (m, with the norm's ε), the matrix before it (its targets are yet to be
  /// chosen), and v_i − v_0.
  struct PostNorm {
    PatchedParameter scale;
    Vector m;
    double eps = 0;
    ParameterTargets matrix;
    std::vector<Vector> shift;
  };
  std::optional<PostNorm> postNorm;
};

/// Runs the model in float64 on `tokens`, the context and the last token, and each patched layer on
/// every prefix of the context. Errors: fewer than two tokens, or more than the model has positions
/// for; a bidirectional model; a layer whose plan is none of the cases above (an expert, a chain
/// with more than additions).
llvm::Expected<std::vector<LayerTargets>> collectTargets(const Program &program, Weights &weights,
                                                         llvm::ArrayRef<int64_t> tokens);

/// One step of gradient descent: from C_i to C_{i+1}. Norms are Frobenius; the patch after step i
/// is Θ_{i+1} − Θ_0.
struct GradientStep {
  double loss = 0;                       ///< L_i(Θ_i)
  double lossAfter = 0;                  ///< L_i(Θ_{i+1}): lower by Σ η ‖Δ_i‖²
  double matrixStep = 0, vectorStep = 0; ///< ‖Θ_{i+1} − Θ_i‖ of matrices and of vectors
  double matrixNorm = 0, vectorNorm = 0; ///< of the patch after the step
  /// Of this step and the one before, over matrices only; none if one of them is zero.
  std::optional<double> cosine;
  /// The matrices' patch after the step, in units of the last: its part along the last patch, the
  /// norm of the rest, and the distance to the last. All 0 if the last patch is zero.
  double along = 0, aside = 0, toEnd = 0;
};

/// The steps of a layer's parameters to its patch.
struct LayerTrace {
  int64_t layer = 0;
  std::vector<GradientStep> steps;
  Patch sum; ///< of all steps, as a patch that can be run
  /// Whether the steps telescope: the largest ‖Σ steps − (Θ_n − Θ_0)‖ / ‖Θ_n − Θ_0‖ of a parameter,
  /// where Θ_n − Θ_0 is the change from the first targets to the last in one step.
  double telescoping = 0;
  /// Components of the scale where h' is zero (to rounding) and a change is needed: no step is
  /// taken there. Algorithm 1 divides these by a rounding error.
  std::vector<size_t> undivided;
};

/// The steps of a layer. `update` chooses h_target in case 2, in any way but scaled, whose scale
/// takes no step of this kind (an error).
llvm::Expected<LayerTrace> traceLayer(const LayerTargets &targets, Update update);

/// How far the sum of the steps is from Algorithm 1's own patch: as below, over the layer's
/// parameters, without the components in which no step is taken.
double differenceFrom(const LayerTrace &trace, const Patch &patch);

/// The largest ‖a − b‖ / ‖b‖ of a parameter of `a`, which `b` has too: 0 if both are zero.
/// Infinite if `b` lacks a parameter that `a` changes. For rank1 patches it is an upper bound,
/// so that it does not lose its digits to cancellation.
double largestRelativeDifference(const Patch &a, const Patch &b);

} // namespace ctxc::experiments

#endif // CTXC_EXPERIMENTS_IMPLICITGRADIENT_H
