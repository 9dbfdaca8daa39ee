//===- StableUpdate.cpp - min Σ (M x − a)² on the unit sphere -------------===//
//
// The paper's "Analytical RMSNorm Inversion": x = a M / (M² − μ) with μ < min M².
// Written with the gap θ = min M² − μ > 0 and δ = M² − min M² ≥ 0, so that no
// digits are lost when μ is close to its bound:  x = a M / (θ + δ),  Σ x² = 1.
//
// 1/‖x(θ)‖ is a power mean of linear functions, hence concave and increasing:
// Newton's method on 1/‖x‖ = 1 from the left of the root never overshoots.
//
// Hard case: a M = 0 on every component of smallest M, and ‖x(0)‖ < 1. Then no
// root exists; θ = 0, and these components take the rest at no change of cost.
//
//===----------------------------------------------------------------------===//
#include "UnitProblem.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace ctxc::detail;

/// Puts `rest` (of Σ x²) on the components of smallest M. All choices cost the
/// same here; of these, the one that moves the scale least.
static void fillHardCase(const UnitProblem &p, double smallest, double rest) {
  double wanted = 0, present = 0;
  int64_t strongest = -1, count = 0;
  for (int64_t k = 0; k < p.size; ++k) {
    if (p.M[k] != smallest)
      continue;
    wanted += p.a[k];
    present += p.direction[k] * p.direction[k];
    ++count;
    if (strongest < 0 || p.direction[k] > p.direction[strongest])
      strongest = k;
  }
  for (int64_t k = 0; k < p.size; ++k) {
    if (p.M[k] != smallest)
      continue;
    double share;
    if (smallest > 0) // a = 0: every component used costs its whole scale
      share = k == strongest;
    else if (wanted > 0) // least Σ (a/x)²
      share = p.a[k] / wanted;
    else // neither scale nor target: stay where the data is
      share = present > 0 ? p.direction[k] * p.direction[k] / present : 1.0 / count;
    p.x[k] = std::sqrt(rest * share);
  }
}

void ctxc::detail::solveStable(const UnitProblem &p) {
  double *weight = p.work, *delta = p.work + p.size, *square = delta + p.size,
         *cube = square + p.size;
  double smallest = *std::min_element(p.M, p.M + p.size);
  double theta = 0;
  for (int64_t k = 0; k < p.size; ++k) {
    weight[k] = p.a[k] * p.M[k];
    delta[k] = (p.M[k] - smallest) * (p.M[k] + smallest);
    // One component alone reaches x_k = 1 there: left of the root.
    theta = std::max(theta, weight[k] - delta[k]);
  }

  double norm = 0;
  constexpr int maxIterations = 100;
  for (int iteration = 0; iteration < maxIterations; ++iteration) {
    constexpr double tiny = std::numeric_limits<double>::min();
    for (int64_t k = 0; k < p.size; ++k) {
      double gap = theta + delta[k];
      p.x[k] = weight[k] / std::max(gap, tiny);
      square[k] = p.x[k] * p.x[k];
      cube[k] = square[k] / std::max(gap, tiny);
    }
    double squares = sum(square, p.size), cubes = sum(cube, p.size);
    norm = std::sqrt(squares);
    if (!(norm > 1) || !(cubes > 0))
      break;
    // d(1/‖x‖)/dθ = Σ x²/(θ+δ) / ‖x‖³
    double next = theta + (norm - 1) * squares / cubes;
    if (!(next > theta) || !std::isfinite(next))
      break;
    theta = next;
  }
  if (theta == 0 && norm < 1)
    fillHardCase(p, smallest, std::max(0.0, 1 - norm * norm));
  normalizeResult(p);
}
