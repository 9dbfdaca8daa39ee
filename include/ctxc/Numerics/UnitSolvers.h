//===- UnitSolvers.h - the solvers of a post-norm's inner problems --------===//
//
// One for each update (Update.h), for any V of UnitVectors.h.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_UNITSOLVERS_H
#define CTXC_NUMERICS_UNITSOLVERS_H

#include "ctxc/Numerics/LeastSolver.h"
#include "ctxc/Numerics/Update.h"

namespace ctxc {
namespace unit_solvers {

//===----------------------------------------------------------------------===//
// Stable: min Σ (M x − a)²
//===----------------------------------------------------------------------===//
//
// The paper's "Analytical RMSNorm Inversion": x = a M / (M² − μ) with μ < min
// M². Written with the gap θ = min M² − μ > 0 and δ = M² − min M² ≥ 0, so that
// no digits are lost when μ is close to its bound:  x = a M / (θ + δ),  Σ x²
// = 1.
//
// 1/‖x(θ)‖ is a power mean of linear functions, hence concave and increasing:
// Newton's method on 1/‖x‖ = 1 from the left of the root never overshoots.

/// The hard case: a M = 0 on every component of smallest M, and ‖x(0)‖ < 1.
/// Then no root exists; θ = 0, and these components take the rest at no change
/// of cost. All choices cost the same; of these, the one that moves the scale
/// least.
template <typename V>
void fillHardCase(V &v, const UnitVectors<V> &p, const typename V::Number &lowest,
                  const typename V::Number &rest) {
  using Number = typename V::Number;
  using Condition = typename V::Condition;
  using Index = typename V::Index;
  auto isLowest = [&](Index k) -> Condition { return v.get(p.M, k) == lowest; };
  auto sums = v.template reduce<V::InOrder, V::InOrder, V::InOrder, V::Largest>([&](Index k) {
    Condition takes = isLowest(k);
    Number direction = v.get(p.direction, k);
    return std::array<Number, 4>{select(takes, v.get(p.a, k), 0),
                                 select(takes, direction * direction, 0), asNumber(takes),
                                 select(takes, direction, -1)};
  });
  Number wanted = sums[0];
  Condition isWanted = wanted > 0;
  Index strongest =
      v.firstWhere([&](Index k) { return all(isLowest(k), v.get(p.direction, k) == sums[3]); });
  v.each([&](Index k) {
    Number alone = asNumber(v.isAt(k, strongest)); // a = 0: each that is used costs its whole scale
    Number byTarget = v.get(p.a, k) / select(isWanted, wanted, 1); // least Σ (a/x)²
    Number share =
        select(lowest > 0, alone, select(isWanted, byTarget, shareOf(v, p, k, sums[1], sums[2])));
    v.set(p.x, k, select(isLowest(k), sqrt(rest * share), v.get(p.x, k)));
  });
}

template <typename V> void solveStable(V &v, const UnitVectors<V> &p) {
  using Number = typename V::Number;
  using Condition = typename V::Condition;
  using Index = typename V::Index;
  const typename V::Vector &weight = p.work[0], &delta = p.work[1];
  Number lowest = v.template reduceOne<V::Smallest>([&](Index k) { return v.get(p.M, k); });
  // One component alone reaches x_k = 1 at its difference: left of the root.
  Number start = v.template reduceOne<V::Largest>([&](Index k) {
    Number M = v.get(p.M, k), product = v.get(p.a, k) * M;
    Number above = (M - lowest) * (M + lowest);
    v.set(weight, k, product);
    v.set(delta, k, above);
    return product - above;
  });
  using Pair = std::array<Number, 2>;
  Pair end = v.repeat(100, Pair{max(start, 0), 0}, [&](const Pair &carried) {
    Number theta = carried[0];
    auto sums = v.template reduce<V::Sum, V::Sum>([&](Index k) {
      Number gap = max(theta + v.get(delta, k), V::tiny), x = v.get(weight, k) / gap;
      v.set(p.x, k, x);
      return Pair{x * x, x * x / gap};
    });
    Number squares = sums[0], cubes = sums[1], norm = sqrt(squares);
    Condition left = all(norm > 1, cubes > 0);
    // d(1/‖x‖)/dθ = Σ x²/(θ+δ) / ‖x‖³
    Number next = theta + (norm - 1) * squares / select(left, cubes, 1);
    Condition moves = all(left, next > theta, next < V::infinity);
    return typename V::template Round<2>{{select(moves, next, theta), norm}, !moves};
  });
  Number norm = end[1];
  v.when(all(end[0] == 0, norm < 1),
         [&] { fillHardCase<V>(v, p, lowest, max(1 - norm * norm, 0)); });
}

//===----------------------------------------------------------------------===//
// Balanced, scaled
//===----------------------------------------------------------------------===//

/// min Σ (a/x)²: x² = a / Σ a.
template <typename V> void solveBalanced(V &v, const UnitVectors<V> &p) {
  using Index = typename V::Index;
  typename V::Number total = v.template reduceOne<V::Sum>([&](Index k) { return v.get(p.a, k); });
  v.each([&](Index k) { v.set(p.x, k, sqrt(v.get(p.a, k) / total)); });
}

/// x ∝ a/M where M > 0: components without a scale keep their share of the
/// norm, the others divide the rest by the ratio a/M, squared only relative to
/// its largest.
template <typename V> void solveScaled(V &v, const UnitVectors<V> &p) {
  using Number = typename V::Number;
  using Condition = typename V::Condition;
  using Index = typename V::Index;
  const typename V::Vector &ratios = p.work[0]; // −1 where there is none
  auto found = v.template reduce<V::Largest, V::InOrder>([&](Index k) {
    Number M = v.get(p.M, k), ratio = v.get(p.a, k) / v.guard(M);
    Condition serves = all(M > 0, ratio < V::infinity);
    v.set(ratios, k, select(serves, ratio, -1));
    return std::array<Number, 2>{select(serves, ratio, -1),
                                 select(serves, 0, square(v.get(p.direction, k)))};
  });
  Condition isAny = found[0] > 0;
  Number largest = select(isAny, found[0], 1);
  Number squares = v.template reduceOne<V::InOrder>([&](Index k) {
    Number ratio = v.get(ratios, k);
    return select(ratio > 0, square(ratio / largest), 0);
  });
  Number factor = sqrt(max(1 - found[1], 0) / select(isAny, squares, 1));
  v.each([&](Index k) {
    Number ratio = v.get(ratios, k);
    v.set(p.x, k, select(any(ratio < 0, !isAny), v.get(p.direction, k), ratio / largest * factor));
  });
}

/// The update's inner problem; its result has length 1.
template <typename V> void solveUnitProblem(Update update, V &v, const UnitVectors<V> &p) {
  switch (update) {
  case Update::Least:
    LeastSolver<V>(v, p).solve();
    break;
  case Update::Balanced:
    solveBalanced(v, p);
    break;
  case Update::Stable:
    solveStable(v, p);
    break;
  case Update::Scaled:
    solveScaled(v, p);
    break;
  case Update::Naive:
    return;
  }
  normalizeResult(v, p);
}

} // namespace unit_solvers
} // namespace ctxc

#endif // CTXC_NUMERICS_UNITSOLVERS_H
