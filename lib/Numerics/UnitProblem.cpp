#include "UnitProblem.h"

#include <algorithm>
#include <cmath>

using namespace ctxc::detail;

double ctxc::detail::sum(const double *values, int64_t size) {
  double lanes[4] = {0, 0, 0, 0};
  int64_t k = 0;
  for (; k + 4 <= size; k += 4)
    for (int lane = 0; lane < 4; ++lane)
      lanes[lane] += values[k + lane];
  for (; k < size; ++k)
    lanes[0] += values[k];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

void ctxc::detail::normalizeResult(const UnitProblem &problem) {
  double squares = 0;
  for (int64_t k = 0; k < problem.size; ++k)
    squares += problem.x[k] * problem.x[k];
  if (!(squares > 0)) {
    std::copy(problem.direction, problem.direction + problem.size, problem.x);
    return;
  }
  double factor = 1 / std::sqrt(squares);
  for (int64_t k = 0; k < problem.size; ++k)
    problem.x[k] *= factor;
}

void ctxc::detail::solveBalanced(const UnitProblem &problem) {
  double total = sum(problem.a, problem.size);
  for (int64_t k = 0; k < problem.size; ++k)
    problem.x[k] = std::sqrt(problem.a[k] / total);
  normalizeResult(problem);
}

void ctxc::detail::solveScaled(const UnitProblem &problem) {
  // Components without a scale keep their share of the norm, the others divide
  // the rest by the ratio a/M, squared only relative to its largest.
  double largest = 0, kept = 0;
  for (int64_t k = 0; k < problem.size; ++k) {
    double ratio = problem.M[k] > 0 ? problem.a[k] / problem.M[k] : 0;
    bool serves = problem.M[k] > 0 && std::isfinite(ratio);
    problem.work[k] = serves ? ratio : -1;
    largest = std::max(largest, problem.work[k]);
    kept += serves ? 0 : problem.direction[k] * problem.direction[k];
  }
  double squares = 0;
  for (int64_t k = 0; k < problem.size; ++k)
    if (problem.work[k] > 0)
      squares += (problem.work[k] / largest) * (problem.work[k] / largest);
  double factor = squares > 0 ? std::sqrt(std::max(1 - kept, 0.0) / squares) : 0;
  for (int64_t k = 0; k < problem.size; ++k)
    problem.x[k] = problem.work[k] < 0 || squares == 0 ? problem.direction[k]
                                                        : problem.work[k] / largest * factor;
  normalizeResult(problem);
}
