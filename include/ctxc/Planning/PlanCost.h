//===- PlanCost.h - what a plan costs: the numbers that objectives rank by --===//
#ifndef CTXC_PLANNING_PLANCOST_H
#define CTXC_PLANNING_PLANCOST_H

#include "ctxc/Planning/BlockPlan.h"

namespace ctxc {

struct PlanCost {
  /// Numbers that a patch stores: out + in for a matrix (u and v), the parameter's own
  /// count for a bias or scale.
  int64_t numbers = 0;
  /// Parameters patched.
  unsigned patches = 0;
  /// Divisions by the squared length of a vector (one for each matrix): they fail if the whole
  /// vector is zero.
  unsigned vectorDivisions = 0;
  /// Divisions entry by entry (scales, known factors of a chain): they fail if one entry is zero,
  /// and magnify rounding errors if one is small.
  int64_t elementDivisions = 0;

  /// Measured: ‖Δ‖_F over all patched parameters together.
  std::optional<double> norm = std::nullopt;
  /// Measured: the mean over other tokens of ‖T_patched(x) − T(x)‖ / ‖T(x)‖, how much the
  /// patch changes the block for tokens that it was not made for.
  std::optional<double> drift = std::nullopt;

  /// Why the patch, although exact here, may fail in another program, which rounds differently;
  /// empty if no reason is known.
  std::string fragility;
};

/// The static part of the cost of `plan`. A plan is fragile if a scale is solved for entry by
/// entry, without a matrix before its norm to share the change (docs/updates.md): if an entry of
/// its data is near zero, a small rounding error becomes a large change.
PlanCost costOf(const BlockPlan &plan);

} // namespace ctxc

#endif // CTXC_PLANNING_PLANCOST_H
