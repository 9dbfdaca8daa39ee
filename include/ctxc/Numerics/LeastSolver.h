//===- LeastSolver.h - min Σ (a/x − M)² on the unit sphere ----------------===//
//
// a_k = x_k = 0 costs nothing.
//
// With s = x² and s0 = (a/M)², the point where a component costs nothing
// (0 where a = 0, ∞ where only M = 0), the sum of s0 decides:
//
//   Σ s0 > 1  shrink   convex; one multiplier λ, x the root of λx⁴ + Max = a²
//   Σ s0 = 1  fit      x = a/M costs nothing
//   Σ s0 < 1  sink     the excess goes where a = M = 0, costs nothing
//             grow     not convex, see there
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_LEASTSOLVER_H
#define CTXC_NUMERICS_LEASTSOLVER_H

#include "ctxc/Numerics/UnitVectors.h"

namespace ctxc {
namespace unit_solvers {

template <typename V> class LeastSolver {
public:
  LeastSolver(V &v, const UnitVectors<V> &p)
      : v(v), p(p), s0(p.work[0]), s(p.work[1]), relative(p.work[2]), dumpCost(p.work[3]) {}

  void solve();

private:
  using Number = typename V::Number;
  using Condition = typename V::Condition;
  using Index = typename V::Index;
  using Rough = typename V::Rough;
  using Vector = typename V::Vector;
  template <size_t n> using Numbers = std::array<Number, n>;

  static constexpr double peak = 27.0 / 256;

  Number at(const Vector &x, const Index &k) const { return v.get(x, k); }

  void shrink(const Number &total0);
  template <bool exact> Numbers<2> shrunk(const Vector &beta, const Number &inverse);
  void sink(const Number &excess);

  void grow(const Number &excess);
  Number near(const Number &t, const Index &except);
  Number nearSlope();
  Number nearCost();
  Number consider(const Number &best, const Number &cost, const Index &except, const Number &rest);
  Number spread(const Number &best, const Number &excess);
  Number dumpPlus(const Number &best, const Index &j);

  V &v;
  const UnitVectors<V> &p;
  const Vector &s0, &s;
  const Vector &relative; ///< (min κ / κ)², κ = M²/a; 0 where a = 0
  const Vector &dumpCost;
};

/// s and −½ ds/d(log λ) of each component, summed. z starts as a quotient that
/// has its value and its slope at b = 0, is 1/b at ∞ and off by at most 12 %
/// between. Two steps of float32, whose divisions are cheap, give six digits;
/// where `exact`, two of float64 take them to all.
template <typename V>
template <bool exact>
auto LeastSolver<V>::shrunk(const Vector &beta, const Number &inverse) -> Numbers<2> {
  return v.template reduce<V::Sum, V::Sum>([=](Index k) {
    constexpr double large = 1e12; // z = 1/b in all digits
    Number b = at(beta, k) * inverse;
    Rough rough = v.roughly(min(b, large));
    Rough z32 = divideRoughly(1 + 0.3f * rough, 1 + rough * (0.55f + 0.3f * rough));
    for (int step = 0; step < 2; ++step) {
      Rough square = z32 * z32;
      z32 = z32 - divideRoughly(square * square + rough * z32 - 1, 4 * square * z32 + rough);
    }
    Number z = z32;
    if (exact) {
      z = select(b < large, z, select(b > 1, 1 / b, 1));
      for (int step = 0; step < 2; ++step) {
        Number square = z * z;
        z = z - (square * square + b * z - 1) / (4 * square * z + b);
      }
    }
    Number fourth = z * z * z * z, root = z * inverse, found = at(p.a, k) * root * root;
    v.set(s, k, found);
    if (exact)
      return Numbers<2>{found, found * fourth / (1 + 3 * fourth)};
    Number ratio = divideRoughly(v.roughly(fourth), v.roughly(1 + 3 * fourth));
    return Numbers<2>{found, found * ratio};
  });
}

/// With λ = w⁴ and x = √a z / w the root reads z⁴ + b z = 1, b = M / (√a w):
/// one parameter, 0 < z ≤ 1, M = 0 included.
///
/// G(λ) = Σ s falls with λ. Each s⁻² is concave in λ and G⁻² is a power mean of
/// them, hence concave: a Newton step on G⁻² = 1 ends left of the root, from
/// wherever it starts. Each s is concave in q = λ^-½: a Newton step on G = 1 in
/// q ends right of it. The first is exact for λ → ∞, the second where
/// components are either at s0 or at a/√λ; both converge quadratically, so
/// their geometric mean does, inside a bracket that cannot fail. It starts
/// where the root would be if G rose with q as one hyperbola, from Σa q to Σs0,
/// gets near in float32, whose bracket may be off by its rounding, and begins
/// another there.
template <typename V> void LeastSolver<V>::shrink(const Number &total0) {
  const Vector &beta = s0; // M / √a, 0 where a = 0
  // z ≤ 1 gives G ≤ Σa / w².
  Number highest = sqrt(v.template reduceOne<V::Sum>([&](Index k) {
    Number a = at(p.a, k);
    v.set(beta, k, select(a > 0, at(p.M, k) / sqrt(select(a > 0, a, 1)), 0));
    return a;
  }));
  // The last digits of Σ s = 1 are the final scaling's.
  Number tolerance = max(min(1e-3 * (total0 - 1), 1e-12), 1e-15);
  constexpr int mostRounds = 100;
  Number start = highest * sqrt(1 - 1 / total0);
  v.repeat(mostRounds, Numbers<5>{0, highest, start, 0, 0}, [&](const Numbers<5> &carried) {
    auto [lo, hi, w, phase, round] = carried;
    Condition exact = phase > 0;
    Number inverse = 1 / w;
    auto [total, slopes] = v.when(
        exact, [&] { return shrunk<true>(beta, inverse); },
        [&] { return shrunk<false>(beta, inverse); });
    Condition over = total > 1, known = slopes > 0;
    Number divisor = select(known, 4 * slopes, 1);
    Number low = select(over, w, lo), high = select(over, hi, w);
    Number left = 1 + total * (total * total - 1) / divisor; // of λ
    Number right = 1 - (total - 1) / divisor;                // of q
    Condition bounds = all(known, left > 0, left < V::infinity);
    low = select(bounds, max(low, w * sqrt(sqrt(select(bounds, left, 1)))), low);
    bounds = all(known, right > 0, right < V::infinity);
    high = select(bounds, min(high, w / sqrt(select(bounds, right, 1))), high);
    Number next = select(low > 0, sqrt(low) * sqrt(high), high / 32);
    Number error = abs(total - 1);
    Condition ends = any(next == w, !(low < high));
    Condition turns = all(!exact, any(ends, error <= 1e-4, round > mostRounds / 2));
    return typename V::template Round<5>{{select(turns, 0, low), select(turns, highest, high),
                                          min(next, highest), select(turns, 1, phase), round + 1},
                                         all(exact, any(error <= tolerance, ends))};
  });
  v.each([&](Index k) { v.set(p.x, k, sqrt(at(s, k))); });
}

//===----------------------------------------------------------------------===//
// Growing
//===----------------------------------------------------------------------===//
//
// Here every M > 0 under an a > 0. In r = √(s0/s) ≤ 1 a component costs
// M² (1 − r)², with slope κ² (1 − r) r³ in s, κ = M²/a. The slope peaks at
// r = ¾: convex (near) above, concave (far) below, and a minimum has at most
// one far component. A common slope ν is at most ν_cap = (27/256) min κ² as
// long as all but one are near. The candidates:
//
//   spread   all near
//   dump j   all of the excess to j, the others at s0
//   dump+ j  j far, the others near with the same slope
//
// A component with a = 0 is at s = 0, or takes the excess at cost M².

/// M² (1 − √(s0/s))², of s ≥ s0 ≥ 0, s > 0.
template <typename Number> Number costOf(const Number &M, const Number &s0, const Number &s) {
  return square(M * (1 - sqrt(s0 / s)));
}

/// Sets s to the near branch at ν = t ν_cap for all but `except`, whose is 0;
/// gives Σ s. r is the root of (1 − r) r³ = c in [¾, 1], a smooth function of y
/// = √(peak − c): two steps of Newton's from a polynomial that is off by at
/// most 2e-5 y.
template <typename V> auto LeastSolver<V>::near(const Number &t, const Index &except) -> Number {
  return v.template reduceOne<V::Sum>([=](Index k) {
    Number c = peak * min(t * at(relative, k), 1);
    Number y = sqrt(peak - c);
    Number r = 1.3254872 * y - 1.71717323;
    r = 0.75 + y * (0.942791159 + y * (-0.787169974 + y * (1.20164468 + y * r)));
    for (int step = 0; step < 2; ++step) {
      Number square = r * r;
      r = r - ((1 - r) * square * r - c) / (square * (3 - 4 * r) - 1e-300);
      r = min(max(r, 0.75), 1);
    }
    Number found = select(v.isAt(k, except), 0, at(s0, k) / (r * r));
    v.set(s, k, found);
    return found;
  });
}

/// dΣs/dt of what near() gave; a component with s = 0, or `except`, has none.
template <typename V> auto LeastSolver<V>::nearSlope() -> Number {
  return v.template reduceOne<V::WideSum>([=](Index k) {
    Number start = at(s0, k), now = at(s, k);
    Condition counts = now > 0;
    Number r = select(counts, sqrt(start / select(counts, now, 1)), 1), square = r * r;
    Number rise = max(4 * r - 3, 1e-12);
    Number slope = 2 * start * peak * at(relative, k) / (square * square * r * rise);
    return select(counts, slope, 0);
  });
}

template <typename V> auto LeastSolver<V>::nearCost() -> Number {
  return v.template reduceOne<V::WideSum>([=](Index k) {
    Number now = at(s, k);
    Condition counts = now > 0;
    return select(counts, costOf<Number>(at(p.M, k), at(s0, k), select(counts, now, 1)), 0);
  });
}

/// Keeps s, with `rest` at `except`, if it is the cheapest so far; the cost of
/// the cheapest.
template <typename V>
auto LeastSolver<V>::consider(const Number &best, const Number &cost, const Index &except,
                              const Number &rest) -> Number {
  v.when(cost < best, [&] {
    v.each([&](Index k) { v.set(p.x, k, sqrt(select(v.isAt(k, except), rest, at(s, k)))); });
  });
  return min(best, cost);
}

/// Σ s(t) = 1 by bisection in u = √(1 − t), in which s is smooth at the cap,
/// quickened by the secant (Illinois).
template <typename V>
auto LeastSolver<V>::spread(const Number &best, const Number &excess) -> Number {
  Number first = near(1, v.none()) - 1;
  auto search = [&] {
    v.repeat(60, Numbers<5>{0, 1, first, -excess, 0}, [&](const Numbers<5> &carried) {
      auto [lo, hi, flo, fhi, side] = carried; // of u, and of Σ s − 1
      Number u = lo + (hi - lo) * flo / (flo - fhi);
      u = select(all(u > lo, u < hi), u, 0.5 * (lo + hi));
      Number f = near(1 - u * u, v.none()) - 1;
      Condition over = f > 0;
      Number low = select(over, u, lo), high = select(over, hi, u);
      return typename V::template Round<5>{
          {low, high, select(over, f, flo * select(side < 0, 0.5, 1)),
           select(over, fhi * select(side > 0, 0.5, 1), f), select(over, 1, -1)},
          any(abs(f) <= 0x1p-50, high - low <= 1e-15)};
    });
    return Numbers<1>{consider(best, nearCost(), v.none(), 0)};
  };
  return v.when(first >= 0, search, [&] { return Numbers<1>{best}; })[0];
}

/// The slope of j falls as the others, growing with t, leave less to it; the
/// smallest t at which both slopes agree is the least fixed point of
///   slope_j(t) = (1 − r) r³ / (peak · relative_j),  r = √(s0_j / s_j(t)),
/// which rises with t. Iterating from t = 0 stays below it; Newton quickens
/// that, and a step beyond it is taken back by halves. Gives up at the cap.
template <typename V> auto LeastSolver<V>::dumpPlus(const Number &best, const Index &j) -> Number {
  Number own = at(s0, j), scale = at(p.M, j), share = at(relative, j);
  // below, above, t, rest, whether the cap was met
  auto found = v.repeat(60, Numbers<5>{0, V::infinity, 0, 0, 0}, [&](const Numbers<5> &carried) {
    Number below = carried[0], above = carried[1], t = carried[2];
    Number rest = 1 - near(t, j);
    Condition left = rest > 0;
    Number r = select(left, sqrt(own / select(left, rest, 1)), 1);
    Condition far = r <= 0.75;
    Number slope = select(far, (1 - r) * r * r * r / (peak * share), V::infinity);
    Number gap = slope - t;
    Condition agree = all(far, abs(gap) <= 1e-14 * t), under = all(far, gap > 0, !agree);
    Number newton = v.when(
        under,
        [&] {
          Number rise = r * r * (3 - 4 * r) * r / (2 * rest) * nearSlope() / (peak * share);
          Number next = select(rise < 1, t + gap / (1 - rise), slope);
          return Numbers<1>{select(next <= 1, next, slope)};
        },
        [&] { return Numbers<1>{t}; })[0];
    Condition capped = all(under, !(newton <= 1));
    Number nextBelow = select(under, t, below), nextAbove = select(under, above, t);
    Number middle = 0.5 * (nextBelow + nextAbove);
    Number next = select(all(under, newton < above), newton, middle);
    Condition stuck = !all(next > nextBelow, next < nextAbove);
    return typename V::template Round<5>{{nextBelow, nextAbove, next, rest, asNumber(capped)},
                                         any(agree, capped, stuck)};
  });
  Number rest = found[3];
  return v.when(
      all(found[4] == 0, rest > own),
      [&] {
        // As a sum of s0 and what j takes, which is nothing where both are 0.
        Number held = own + (rest - own);
        Number cost = select(held > 0, costOf<Number>(scale, own, select(held > 0, held, 1)), 0);
        return Numbers<1>{consider(best, nearCost() + cost, j, rest)};
      },
      [&] { return Numbers<1>{best}; })[0];
}

template <typename V> void LeastSolver<V>::grow(const Number &excess) {
  auto flatness = [&](Index k) -> Number { // κ; ∞ where a = 0
    Number a = at(p.a, k), M = at(p.M, k);
    return select(a > 0, M * M / v.guard(a), V::infinity);
  };
  Number smallest = v.template reduceOne<V::Smallest>(flatness);
  // Without a usable cap (no a > 0, or numbers out of range) only dumps remain.
  Condition capped = all(smallest > 0, smallest < V::infinity);
  Number cheapestCost = v.template reduceOne<V::Smallest>([&](Index k) {
    Number start = at(s0, k), cost = costOf<Number>(at(p.M, k), start, start + excess);
    Number ratio = smallest / v.guard(flatness(k));
    v.set(relative, k, select(capped, ratio * ratio, 0));
    v.set(dumpCost, k, cost);
    return cost;
  });
  Number infinite = V::infinity;
  Number best = v.when(
      capped, [&] { return Numbers<1>{spread(infinite, excess)}; },
      [&] { return Numbers<1>{infinite}; })[0];
  Index cheapest = v.firstWhere([&](Index k) { return at(dumpCost, k) == cheapestCost; });
  v.each([&](Index k) { v.set(s, k, at(s0, k)); });
  best = consider(best, cheapestCost, cheapest, at(s0, cheapest) + excess);
  v.when(capped, [&] {
    // dump+ for the cheapest dumps whose slope alone does not pass the cap; the
    // others at the cap take what they can, which bounds the cost from below.
    Number taken = max(near(1, v.none()) + excess - 1, 0), need = max(excess - taken, 0);
    auto isCheaper = [&](Index k, const Number &than) -> Condition {
      Number start = at(s0, k);
      return costOf<Number>(at(p.M, k), start, select(start > 0, start + need, 1)) < than;
    };
    v.each([&](Index k) {
      Number start = at(s0, k), r = sqrt(start / (start + excess));
      Condition possible = all(start > 0, r < 0.75, (1 - r) * r * r * r <= peak * at(relative, k),
                               isCheaper(k, best));
      v.set(dumpCost, k, select(possible, at(dumpCost, k), V::infinity));
    });
    v.repeat(12, Numbers<1>{best}, [&](const Numbers<1> &carried) {
      Number cost = v.template reduceOne<V::Smallest>([&](Index k) { return at(dumpCost, k); });
      Condition isFound = cost < V::infinity;
      auto next = v.when(
          isFound,
          [&] {
            Index j = v.firstWhere([&](Index k) { return at(dumpCost, k) == cost; });
            Number after = dumpPlus(carried[0], j);
            v.each([&](Index k) {
              Condition remains = all(!v.isAt(k, j), isCheaper(k, after));
              v.set(dumpCost, k, select(remains, at(dumpCost, k), V::infinity));
            });
            return Numbers<1>{after};
          },
          [&] { return carried; });
      return typename V::template Round<1>{next, !isFound};
    });
  });
}

//===----------------------------------------------------------------------===//
// The cases
//===----------------------------------------------------------------------===//

/// The excess goes where neither scale nor target is.
template <typename V> void LeastSolver<V>::sink(const Number &excess) {
  auto [present, count] = v.template reduce<V::InOrder, V::InOrder>([&](Index k) {
    Condition free = all(at(p.M, k) == 0, at(p.a, k) == 0);
    return Numbers<2>{select(free, square(at(p.direction, k)), 0), asNumber(free)};
  });
  v.each([&, present = present, count = count](Index k) {
    Number M = at(p.M, k), share = shareOf(v, p, k, present, count);
    v.set(p.x, k, select(M > 0, at(p.a, k) / v.guard(M), sqrt(excess * share)));
  });
}

template <typename V> void LeastSolver<V>::solve() {
  auto [total, sinks] = v.template reduce<V::Sum, V::Sum>([&](Index k) {
    Number a = at(p.a, k), M = at(p.M, k);
    Number ratio = min(a / v.guard(M), V::mostRatio);
    Number start = select(a > 0, ratio * ratio, 0);
    v.set(s0, k, start);
    return Numbers<2>{start, asNumber(all(a == 0, M == 0))};
  });
  Number sum = total, excess = 1 - sum;
  constexpr double fits = 1e-14;
  Condition shrinks = excess<-fits, grows = excess> fits, sunk = sinks > 0;
  v.when(shrinks, [&] { shrink(sum); });
  v.when(all(grows, sunk), [&] { sink(excess); });
  v.when(all(grows, !sunk), [&] { grow(excess); });
  v.when(all(!shrinks, !grows), [&] {
    v.each([&](Index k) {
      Number M = at(p.M, k);
      v.set(p.x, k, select(M > 0, at(p.a, k) / v.guard(M), 0));
    });
  });
}

} // namespace unit_solvers
} // namespace ctxc

#endif // CTXC_NUMERICS_LEASTSOLVER_H
