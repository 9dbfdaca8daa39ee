// min Σ (a/x − M)² on the unit sphere; lib/Numerics/LeastUpdate.cpp says why each step is right.
#include "lib/Lowering/GPU/NormSolver.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

class LeastSolver {
public:
  LeastSolver(VectorWriter &v, const UnitVectors &p)
      : v(v), p(p), s0(p.work[0]), s(p.work[1]), relative(p.work[2]), dumpCost(p.work[3]) {}

  void solve();

private:
  Number at(const Components &x, Value k) { return v.get(x, k); }

  void shrink(const Number &total0);
  void sink(const Number &excess);

  // Growing
  Number near(const Number &t, const Number &except);
  Number nearCost(const Number &except);
  Number nearSlope(const Number &t, const Number &except);
  Number consider(const Number &best, const Number &cost, const Number &except, const Number &rest);
  Number spread(const Number &best, const Number &excess);
  Number dumpPlus(const Number &best, const Number &j);
  void grow(const Number &excess);

  VectorWriter &v;
  const UnitVectors &p;
  Components s0, s;
  Components relative; ///< (min κ / κ)², κ = M²/a; 0 where a = 0
  Components dumpCost;
};

constexpr double peak = 27.0 / 256;
/// No component.
constexpr double none = -1;

/// M² (1 − √(s0/s))², of s ≥ s0 ≥ 0, s > 0.
Number costOf(const Number &M, const Number &s0, const Number &s) {
  return square(M * (1 - sqrt(s0 / s)));
}

/// The root z of z⁴ + b z = 1: Newton from the right in float32, then twice in float64.
Number shrunkRoot(const Number &b) {
  constexpr double large = 1e12; // z = 1/b in all digits
  Number near = min(b, large), z = select(b > 1, divideRoughly(1, max(near, 1)), 1);
  for (int step = 0; step < 4; ++step) {
    Number square = z * z;
    z = z - divideRoughly(square * square + near * z - 1, 4 * square * z + near);
  }
  z = select(b < large, z, 1 / max(b, 1));
  for (int step = 0; step < 2; ++step) {
    Number square = z * z;
    z = z - (square * square + b * z - 1) / (4 * square * z + b);
  }
  return z;
}

} // namespace

//===----------------------------------------------------------------------===//
// Shrinking
//===----------------------------------------------------------------------===//

void LeastSolver::shrink(const Number &total0) {
  Components beta = s0; // M / √a, 0 where a = 0
  Number sum = v.sum([&](Value k) {
    Number a = at(p.a, k);
    v.set(beta, k, select(a > 0, at(p.M, k) / sqrt(max(a, tiny)), 0));
    return a;
  });
  Number highest = sqrt(sum);
  Number tolerance = max(min(1e-3 * (total0 - 1), 1e-12), 1e-15);
  v.repeat(100, {0, highest, highest}, [&](Numbers carried) {
    Number lo = carried[0], hi = carried[1], w = carried[2], inverse = 1 / w;
    Numbers sums = v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
      Number z = shrunkRoot(at(beta, k) * inverse), fourth = square(z * z), root = z * inverse;
      Number found = at(p.a, k) * root * root;
      v.set(s, k, found);
      return Numbers{found, found * fourth / (1 + 3 * fourth)};
    });
    Number total = sums[0], slopes = 4 * sums[1];
    Condition over = total > 1, known = slopes > 0;
    Number divisor = select(known, slopes, 1);
    lo = select(over, w, lo), hi = select(over, hi, w);
    Number left = 1 + total * (total * total - 1) / divisor; // of λ
    Number right = 1 - (total - 1) / divisor;                // of q
    Number one = select(known & (left > 0) & (left < huge), left, 0);
    lo = max(lo, w * sqrt(sqrt(one)));
    Condition bounds = known & (right > 0) & (right < huge);
    hi = select(bounds, min(hi, w / sqrt(select(bounds, right, 1))), hi);
    Number next = select(lo > 0, sqrt(lo) * sqrt(hi), hi / 32);
    Condition done = (abs(total - 1) <= tolerance) | (next == w) | !(lo < hi);
    return VectorWriter::Round{{lo, hi, min(next, highest)}, done};
  });
  v.each([&](Value k) { v.set(p.x, k, sqrt(at(s, k))); });
}

//===----------------------------------------------------------------------===//
// Growing
//===----------------------------------------------------------------------===//

/// Sets s to the near branch at ν = t ν_cap for all but `except`, whose is 0; gives Σ s.
Number LeastSolver::near(const Number &t, const Number &except) {
  return v.sum([&](Value k) {
    Number c = peak * min(t * at(relative, k), 1), start = at(s0, k);
    Number r = min(0.75 + sqrt((peak - c) / 1.125), 1);
    for (int step = 0; step < 6; ++step) {
      Number square = r * r;
      r = r - ((1 - r) * square * r - c) / (square * (3 - 4 * r) - tiny);
      r = min(max(r, 0.75), 1);
    }
    Number found = select(v.toNumber(k) == except, 0, start / (r * r));
    v.set(s, k, found);
    return found;
  });
}

/// dΣs/dt after near(t, except).
Number LeastSolver::nearSlope(const Number &t, const Number &except) {
  return v.sum([&](Value k) {
    Number start = at(s0, k), now = at(s, k);
    Condition counts = !(v.toNumber(k) == except) & (start > 0);
    Number r = sqrt(select(counts, start, 1) / select(counts, now, 1));
    Number slope = 2 * start * peak * at(relative, k) / (square(r * r) * r * max(4 * r - 3, 1e-12));
    return select(counts, slope, 0);
  });
}

Number LeastSolver::nearCost(const Number &except) {
  return v.sum([&](Value k) {
    Number start = at(s0, k);
    Condition counts = !(v.toNumber(k) == except) & (start > 0);
    return select(counts, costOf(at(p.M, k), start, select(counts, at(s, k), 1)), 0);
  });
}

/// Keeps s, with `rest` at `except`, if it is the cheapest so far; the cost of the cheapest.
Number LeastSolver::consider(const Number &best, const Number &cost, const Number &except,
                             const Number &rest) {
  v.when(cost < best, [&] {
    v.each([&](Value k) { v.set(p.x, k, sqrt(select(v.toNumber(k) == except, rest, at(s, k)))); });
  });
  return min(best, cost);
}

/// Σ s(t) = 1 in u = √(1 − t), by the secant (Illinois).
Number LeastSolver::spread(const Number &best, const Number &excess) {
  Number first = near(1, none) - 1;
  return v.when(first >= 0,
                [&] {
                  v.repeat(60, {0, 1, first, -excess, 0}, [&](Numbers carried) {
                    Number lo = carried[0], hi = carried[1], flo = carried[2], fhi = carried[3],
                           side = carried[4];
                    Number u = lo + (hi - lo) * flo / (flo - fhi);
                    u = select((u > lo) & (u < hi), u, 0.5 * (lo + hi));
                    Number f = near(1 - u * u, none) - 1;
                    Condition over = f > 0;
                    Number nextLow = select(over, u, lo), nextHigh = select(over, hi, u);
                    Number low = select(over, f, flo * select(side < 0, 0.5, 1));
                    Number high = select(over, fhi * select(side > 0, 0.5, 1), f);
                    Condition done = (abs(f) <= 0x1p-50) | (nextHigh - nextLow <= 1e-15);
                    return VectorWriter::Round{{nextLow, nextHigh, low, high, select(over, 1, -1)},
                                               done};
                  });
                  return Numbers{consider(best, nearCost(none), none, 0)};
                },
                {best})[0];
}

/// The excess to j, on its far branch, with the others near at the same slope.
Number LeastSolver::dumpPlus(const Number &best, const Number &j) {
  Number own = v.get(s0, j), scale = v.get(p.M, j), share = v.get(relative, j);
  // below, above, t, rest, whether the cap was met
  Numbers found = v.repeat(60, {0, huge, 0, 0, 0}, [&](Numbers carried) {
    Number below = carried[0], above = carried[1], t = carried[2];
    Number rest = 1 - near(t, j);
    Condition left = rest > 0;
    Number r = select(left, sqrt(own / select(left, rest, 1)), 1);
    Condition far = left & (r <= 0.75);
    Number slope = select(far, (1 - r) * r * r * r / (peak * share), huge);
    Number gap = slope - t;
    Condition agree = far & (abs(gap) <= 1e-14 * t), under = far & (gap > 0);
    Number rise =
        r * r * (3 - 4 * r) * r / (2 * select(left, rest, 1)) * nearSlope(t, j) / (peak * share);
    Number newton = select(rise < 1, t + gap / (1 - rise), slope);
    newton = select(newton <= 1, newton, slope);
    Condition capped = under & !(newton <= 1) & !agree;
    Number nextBelow = select(under, t, below), nextAbove = select(under, above, t);
    Number middle = 0.5 * (nextBelow + nextAbove);
    Number next = select(under & (newton < above), newton, middle);
    Condition stuck = !((next > nextBelow) & (next < nextAbove));
    return VectorWriter::Round{{nextBelow, nextAbove, next, rest, asNumber(capped)},
                               agree | capped | stuck};
  });
  Number rest = found[3];
  Condition holds = (found[4] == 0) & (rest > own);
  return v.when(
      holds,
      [&] { return Numbers{consider(best, nearCost(j) + costOf(scale, own, rest), j, rest)}; },
      {best})[0];
}

void LeastSolver::grow(const Number &excess) {
  auto flatness = [&](Value k) {
    Number a = at(p.a, k);
    return select(a > 0, square(at(p.M, k)) / max(a, tiny), huge);
  };
  Number smallest = v.smallest(flatness);
  // Without a usable cap (no a > 0, or numbers out of range) only dumps remain.
  Condition capped = (smallest > 0) & (smallest < huge);
  Number cheapestCost = v.smallest([&](Value k) {
    Number start = at(s0, k), cost = costOf(at(p.M, k), start, start + excess);
    Number ratio = smallest / max(flatness(k), tiny);
    v.set(relative, k, select(capped & (at(p.a, k) > 0), ratio * ratio, 0));
    v.set(dumpCost, k, cost);
    return cost;
  });
  Number best = v.when(capped, [&] { return Numbers{spread(huge, excess)}; }, {huge})[0];
  Number cheapest = v.firstWhere([&](Value k) { return at(dumpCost, k) == cheapestCost; });
  v.each([&](Value k) { v.set(s, k, at(s0, k)); });
  best = consider(best, cheapestCost, cheapest, v.get(s0, cheapest) + excess);
  v.when(capped, [&] {
    // dump+ for the cheapest dumps whose slope alone does not pass the cap; the others at the cap
    // take what they can, which bounds the cost from below.
    Number taken = max(near(1, none) + excess - 1, 0), need = max(excess - taken, 0);
    v.repeat(12, {best}, [&](Numbers carried) {
      Number least = carried[0];
      auto costIfPossible = [&](Value k) {
        Number start = at(s0, k), M = at(p.M, k), cost = at(dumpCost, k);
        Number r = sqrt(start / (start + excess));
        Number withNeed = costOf(M, start, start + need);
        Condition possible = (cost < huge) & (start > 0) & (r < 0.75) &
                             ((1 - r) * r * r * r <= peak * at(relative, k)) & (withNeed < least);
        return select(possible, cost, huge);
      };
      Number cost = v.smallest(costIfPossible);
      Condition found = cost < huge;
      Number next =
          v.when(found,
                 [&] {
                   Number j = v.firstWhere([&](Value k) { return costIfPossible(k) == cost; });
                   Number after = dumpPlus(least, j);
                   v.each([&](Value k) {
                     v.set(dumpCost, k, select(v.toNumber(k) == j, huge, at(dumpCost, k)));
                   });
                   return Numbers{after};
                 },
                 {least})[0];
      return VectorWriter::Round{{next}, !found};
    });
  });
}

//===----------------------------------------------------------------------===//
// The cases
//===----------------------------------------------------------------------===//

/// The excess goes where neither scale nor target is.
void LeastSolver::sink(const Number &excess) {
  auto isFree = [&](Value k) { return (at(p.M, k) == 0) & (at(p.a, k) == 0); };
  Numbers sums = v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Condition free = isFree(k);
    return Numbers{select(free, square(at(p.direction, k)), 0), asNumber(free)};
  });
  v.each([&](Value k) {
    Number M = at(p.M, k), share = shareOf(v, p, k, sums[0], sums[1]);
    v.set(p.x, k, select(M > 0, at(p.a, k) / max(M, tiny), sqrt(excess * share)));
  });
}

void LeastSolver::solve() {
  Numbers sums = v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Number a = at(p.a, k), M = at(p.M, k);
    Number ratio = min(a / max(M, tiny), 1e148);
    Number start = select(a > 0, ratio * ratio, 0);
    v.set(s0, k, start);
    return Numbers{start, asNumber((a == 0) & (M == 0))};
  });
  Number total = sums[0], excess = 1 - total;
  constexpr double fits = 1e-14;
  Condition shrinks = excess<-fits, grows = excess> fits, sinks = sums[1] > 0;
  v.when(shrinks, [&] { shrink(total); });
  v.when(grows & sinks, [&] { sink(excess); });
  v.when(grows & !sinks, [&] { grow(excess); });
  v.when(!shrinks & !grows, [&] {
    v.each([&](Value k) {
      Number M = at(p.M, k);
      v.set(p.x, k, select(M > 0, at(p.a, k) / max(M, tiny), 0));
    });
  });
}

void gpu_lowering::writeLeast(VectorWriter &v, const UnitVectors &p) { LeastSolver(v, p).solve(); }
