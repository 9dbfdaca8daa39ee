//===- LeastUpdate.cpp - min Σ (a/x − M)² on the unit sphere --------------===//
//
// With s = x² and s0 = (a/M)², the point where a component costs nothing
// (0 where a = 0, ∞ where only M = 0), the sum of s0 decides:
//
//   Σ s0 > 1  shrink   convex; one multiplier λ, x the root of λx⁴ + Max = a²
//   Σ s0 = 1  fit      x = a/M costs nothing
//   Σ s0 < 1  sink     the excess goes where a = M = 0, costs nothing
//             grow     not convex, see the section below
//
//===----------------------------------------------------------------------===//
#include "EachCpu.h"
#include "UnitProblem.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace ctxc::detail;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// s0 of each component, into `s0`. Whether there is one where a = M = 0.
CTXC_EACH_CPU
static bool freePoints(int64_t size, const double *__restrict a, const double *__restrict M,
                       double *__restrict s0) {
  int64_t sinks = 0;
  for (int64_t k = 0; k < size; ++k) {
    double ratio = a[k] / M[k];
    s0[k] = a[k] > 0 ? ratio * ratio : 0;
    sinks += a[k] == 0 && M[k] == 0;
  }
  return sinks > 0;
}

//===----------------------------------------------------------------------===//
// Shrinking
//===----------------------------------------------------------------------===//

/// s and −½ ds/d(log λ) of each component. z starts as a quotient that has its value and its slope
/// at b = 0, is 1/b at ∞ and off by at most 12 % between. Two steps of float32, whose divisions are
/// cheap, give six digits; where `exact`, two of float64 take them to all.
template <bool exact>
[[gnu::always_inline]] static inline void
shrinkEach(int64_t size, const double *__restrict a, const double *__restrict beta, double inverse,
           double *__restrict s, double *__restrict slope) {
  constexpr double large = 1e12; // z = 1/b in all digits
  for (int64_t k = 0; k < size; ++k) {
    double b = beta[k] * inverse;
    float rough = float(b < large ? b : large);
    float z32 = (1 + 0.3f * rough) / (1 + rough * (0.55f + 0.3f * rough));
    for (int step = 0; step < 2; ++step) {
      float square = z32 * z32;
      z32 -= (square * square + rough * z32 - 1) / (4 * square * z32 + rough);
    }
    double z = z32;
    if (exact) {
      double first = b > 1 ? 1 / b : 1;
      z = b < large ? z : first;
      for (int step = 0; step < 2; ++step) {
        double square = z * z;
        z -= (square * square + b * z - 1) / (4 * square * z + b);
      }
    }
    double fourth = z * z * z * z, root = z * inverse;
    s[k] = a[k] * root * root;
    slope[k] = exact ? s[k] * fourth / (1 + 3 * fourth)
                     : s[k] * double(float(fourth) / float(1 + 3 * fourth));
  }
}

CTXC_EACH_CPU
static void shrunk(int64_t size, const double *a, const double *beta, double inverse, double *s,
                   double *slope) {
  shrinkEach<true>(size, a, beta, inverse, s, slope);
}

CTXC_EACH_CPU
static void shrunkRoughly(int64_t size, const double *a, const double *beta, double inverse,
                          double *s, double *slope) {
  shrinkEach<false>(size, a, beta, inverse, s, slope);
}

/// M / √a, 0 where a = 0.
CTXC_EACH_CPU
static void ratios(int64_t size, const double *__restrict a, const double *__restrict M,
                   double *__restrict beta) {
  for (int64_t k = 0; k < size; ++k)
    beta[k] = a[k] > 0 ? M[k] / std::sqrt(a[k]) : 0;
}

CTXC_EACH_CPU
static void roots(int64_t size, const double *__restrict s, double *__restrict x) {
  for (int64_t k = 0; k < size; ++k)
    x[k] = std::sqrt(s[k]);
}

/// With λ = w⁴ and x = √a z / w the root reads z⁴ + b z = 1, b = M / (√a w):
/// one parameter, 0 < z ≤ 1, M = 0 included.
///
/// G(λ) = Σ s falls with λ. Each s⁻² is concave in λ and G⁻² is a power mean of
/// them, hence concave: a Newton step on G⁻² = 1 ends left of the root, from
/// wherever it starts. Each s is concave in q = λ^-½: a Newton step on G = 1 in
/// q ends right of it. The first is exact for λ → ∞, the second where components
/// are either at s0 or at a/√λ; both converge quadratically, so their geometric
/// mean does, inside a bracket that cannot fail. It starts where the root would be if G rose with q
/// as one hyperbola, from Σa q to Σs0, gets near in float32, whose bracket may be off by its
/// rounding, and begins another there.
static void shrink(const UnitProblem &p, double total0) {
  double *beta = p.work, *s = beta + p.size, *slope = s + p.size;
  ratios(p.size, p.a, p.M, beta);

  // z ≤ 1 gives G ≤ Σa / w².
  const double highest = std::sqrt(sum(p.a, p.size));
  double lo = 0, hi = highest, w = highest * std::sqrt(1 - 1 / total0);
  // The last digits of Σ s = 1 are the final scaling's.
  double tolerance = std::clamp(1e-3 * (total0 - 1), 1e-15, 1e-12);
  bool exact = false;
  constexpr int maxIterations = 100;
  for (int iteration = 0; iteration < maxIterations; ++iteration) {
    (exact ? shrunk : shrunkRoughly)(p.size, p.a, beta, 1 / w, s, slope);
    double total = sum(s, p.size), slopes = sum(slope, p.size);
    if (exact && std::fabs(total - 1) <= tolerance)
      break;
    (total > 1 ? lo : hi) = w;
    double left = 1 + total * (total * total - 1) / (4 * slopes); // of λ
    double right = 1 - (total - 1) / (4 * slopes);                // of q
    if (left > 0 && left < infinity)
      lo = std::max(lo, w * std::sqrt(std::sqrt(left)));
    if (right > 0 && right < infinity)
      hi = std::min(hi, w / std::sqrt(right));
    double next = lo > 0 ? std::sqrt(lo) * std::sqrt(hi) : hi / 32;
    bool ends = next == w || !(lo < hi);
    if (exact && ends)
      break;
    if (!exact && (ends || std::fabs(total - 1) <= 1e-4 || iteration > maxIterations / 2)) {
      exact = true;
      lo = 0, hi = highest;
    }
    w = std::min(next, highest);
  }
  roots(p.size, s, p.x);
}

//===----------------------------------------------------------------------===//
// Growing
//===----------------------------------------------------------------------===//
//
// Here every M > 0 under an a > 0. In r = √(s0/s) ≤ 1 a component costs
// M² (1 − r)², with slope κ² (1 − r) r³ in s, κ = M²/a. The slope peaks at
// r = ¾: convex (near) above, concave (far) below, and a minimum has at most one
// far component. A common slope ν is at most ν_cap = (27/256) min κ² as long as
// all but one are near. The candidates:
//
//   spread   all near
//   dump j   all of the excess to j, the others at s0
//   dump+ j  j far, the others near with the same slope
//
// A component with a = 0 is at s = 0, or takes the excess at cost M².

static constexpr double peak = 27.0 / 256;

/// The cost of s = s0 + amount, amount > 0 or s0 > 0.
[[gnu::always_inline]] static inline double costOfDump(double M, double s0, double amount) {
  double change = M * (1 - std::sqrt(s0 / (s0 + amount)));
  return change * change;
}

CTXC_EACH_CPU
static void dumpCosts(int64_t size, const double *__restrict M, const double *__restrict s0,
                      double amount, double *__restrict costs) {
  for (int64_t k = 0; k < size; ++k)
    costs[k] = costOfDump(M[k], s0[k], amount);
}

/// κ = M²/a; ∞ where a = 0.
CTXC_EACH_CPU
static void flatness(int64_t size, const double *__restrict a, const double *__restrict M,
                     double *__restrict kappa) {
  for (int64_t k = 0; k < size; ++k)
    kappa[k] = a[k] > 0 ? M[k] * M[k] / a[k] : infinity;
}

/// Sets s to the near branch at ν = t ν_cap. r is the root of (1 − r) r³ = c in [¾, 1], a smooth
/// function of y = √(peak − c): two steps of Newton's from a polynomial that is off by at most 2e-5
/// y.
CTXC_EACH_CPU
static void nearBranch(int64_t size, double t, const double *__restrict relative,
                       const double *__restrict s0, double *__restrict s) {
  for (int64_t k = 0; k < size; ++k) {
    double c = t * relative[k];
    c = peak * (c < 1.0 ? c : 1.0);
    double y = std::sqrt(peak - c);
    double r = 1.3254872 * y - 1.71717323;
    r = 0.75 + y * (0.942791159 + y * (-0.787169974 + y * (1.20164468 + y * r)));
    for (int step = 0; step < 2; ++step) {
      double square = r * r;
      r -= ((1 - r) * square * r - c) / (square * (3 - 4 * r) - 1e-300);
      r = r > 0.75 ? r : 0.75;
      r = r < 1.0 ? r : 1.0;
    }
    s[k] = s0[k] / (r * r);
  }
}

/// √(s0/s) where s > 0, else 1: no component, or `except`.
[[gnu::always_inline]] static inline double nearRatio(double s0, double s) {
  return s > 0 ? std::sqrt(s0 / s) : 1;
}

/// dΣs/dt of what nearBranch gave.
CTXC_EACH_CPU
static double nearSlope(int64_t size, const double *relative, const double *s0, const double *s) {
  return sumEach(size, [=](int64_t k) {
    double r = nearRatio(s0[k], s[k]), square = r * r, rise = 4 * r - 3;
    rise = rise > 1e-12 ? rise : 1e-12;
    double slope = 2 * s0[k] * peak * relative[k] / (square * square * r * rise);
    return s[k] > 0 ? slope : 0;
  });
}

CTXC_EACH_CPU
static double nearCost(int64_t size, const double *M, const double *s0, const double *s) {
  return sumEach(size, [=](int64_t k) {
    double change = M[k] * (1 - nearRatio(s0[k], s[k]));
    return change * change;
  });
}

namespace {
class Growing {
public:
  explicit Growing(const UnitProblem &problem, double excess)
      : p(problem), s0(p.work), s(p.work + p.size), relative(p.work + 2 * p.size),
        dumpCost(p.work + 3 * p.size), excess(excess) {}

  void solve();

private:
  double dump(int64_t k, double amount) const;
  double near(double t, int64_t except);
  double cost() const { return nearCost(p.size, p.M, s0, s); }
  void spread();
  void dumpPlus(int64_t j);
  void consider(double cost, int64_t except, double rest);

  const UnitProblem &p;
  double *s0, *s;
  double *relative; ///< (min κ / κ)²; 0 where a = 0
  double *dumpCost;
  double excess, bestCost = infinity;
};
} // namespace

double Growing::dump(int64_t k, double amount) const {
  return s0[k] == 0 && !(amount > 0) ? 0 : costOfDump(p.M[k], s0[k], amount);
}

/// The near branch for all but `except`; returns Σ s.
double Growing::near(double t, int64_t except) {
  nearBranch(p.size, t, relative, s0, s);
  if (except >= 0)
    s[except] = 0;
  return sum(s, p.size);
}

/// Keeps s, with `rest` at `except`, if it is the cheapest so far.
void Growing::consider(double cost, int64_t except, double rest) {
  if (!(cost < bestCost))
    return;
  bestCost = cost;
  for (int64_t k = 0; k < p.size; ++k)
    p.x[k] = std::sqrt(k == except ? rest : s[k]);
}

/// Σ s(t) = 1 by bisection in u = √(1 − t), in which s is smooth at the cap,
/// quickened by the secant (Illinois).
void Growing::spread() {
  double lo = 0, hi = 1;                       // u
  double flo = near(1, -1) - 1, fhi = -excess; // Σ s − 1
  if (!(flo >= 0))
    return;
  int side = 0;
  constexpr int maxIterations = 60;
  for (int iteration = 0; iteration < maxIterations && hi - lo > 1e-15; ++iteration) {
    double u = lo + (hi - lo) * flo / (flo - fhi);
    if (!(u > lo && u < hi))
      u = 0.5 * (lo + hi);
    double f = near(1 - u * u, -1) - 1;
    if (std::fabs(f) <= 4 * std::numeric_limits<double>::epsilon())
      break;
    if (f > 0) {
      lo = u, flo = f;
      fhi *= side > 0 ? 0.5 : 1;
      side = 1;
    } else {
      hi = u, fhi = f;
      flo *= side < 0 ? 0.5 : 1;
      side = -1;
    }
  }
  consider(cost(), -1, 0);
}

/// The slope of j falls as the others, growing with t, leave less to it; the
/// smallest t at which both slopes agree is the least fixed point of
///   slope_j(t) = (1 − r) r³ / (peak · relative_j),  r = √(s0_j / s_j(t)),
/// which rises with t. Iterating from t = 0 stays below it; Newton quickens
/// that, and a step beyond it is taken back by halves. Gives up at the cap.
void Growing::dumpPlus(int64_t j) {
  double below = 0, above = infinity, t = 0, rest = 0;
  constexpr int maxIterations = 60;
  for (int iteration = 0; iteration < maxIterations; ++iteration) {
    rest = 1 - near(t, j);
    double r = rest > 0 ? std::sqrt(s0[j] / rest) : infinity;
    bool far = r <= 0.75;
    double slope = far ? (1 - r) * r * r * r / (peak * relative[j]) : infinity;
    double gap = slope - t;
    if (far && std::fabs(gap) <= 1e-14 * t)
      break;
    if (far && gap > 0) {
      below = t;
      double rise = r * r * (3 - 4 * r) * r / (2 * rest) * nearSlope(p.size, relative, s0, s) /
                    (peak * relative[j]);
      double next = rise < 1 ? t + gap / (1 - rise) : slope;
      if (!(next <= 1))
        next = slope;
      if (!(next <= 1))
        return;
      t = next < above ? next : 0.5 * (below + above);
    } else {
      above = t;
      t = 0.5 * (below + above);
    }
    if (!(t > below && t < above))
      break;
  }
  if (rest > s0[j])
    consider(cost() + dump(j, rest - s0[j]), j, rest);
}

void Growing::solve() {
  // solveLeast left s0 where it is.
  flatness(p.size, p.a, p.M, relative); // κ
  double smallest = *std::min_element(relative, relative + p.size);
  // Without a usable cap (no a > 0, or numbers out of range) only dumps remain.
  bool capped = smallest > 0 && smallest < infinity;
  for (int64_t k = 0; k < p.size; ++k) {
    double ratio = smallest / relative[k];
    relative[k] = capped ? ratio * ratio : 0;
  }
  dumpCosts(p.size, p.M, s0, excess, dumpCost);
  if (capped)
    spread();

  int64_t cheapest = std::min_element(dumpCost, dumpCost + p.size) - dumpCost;
  std::copy(s0, s0 + p.size, s);
  consider(dumpCost[cheapest], cheapest, s0[cheapest] + excess);
  if (!capped)
    return;

  // dump+ for the cheapest dumps whose slope alone does not pass the cap; the
  // others at the cap take what they can, which bounds the cost from below.
  double taken = std::max(0.0, near(1, -1) + excess - 1);
  double need = std::max(0.0, excess - taken);
  constexpr int maxCandidates = 12;
  for (int candidate = 0; candidate < maxCandidates; ++candidate) {
    int64_t j = -1;
    for (int64_t k = 0; k < p.size; ++k) {
      if (dumpCost[k] == infinity || s0[k] == 0 || (j >= 0 && dumpCost[k] >= dumpCost[j]))
        continue;
      double r = std::sqrt(s0[k] / (s0[k] + excess));
      bool possible = r < 0.75 && (1 - r) * r * r * r <= peak * relative[k];
      if (possible && dump(k, need) < bestCost)
        j = k;
    }
    if (j < 0)
      return;
    dumpPlus(j);
    dumpCost[j] = infinity;
  }
}

//===----------------------------------------------------------------------===//
// The cases
//===----------------------------------------------------------------------===//

/// The excess goes where neither scale nor target is, in proportion to what the
/// data has there: a run that needs no patch then gets none.
static void sink(const UnitProblem &p, double excess) {
  double present = 0;
  int64_t count = 0;
  for (int64_t k = 0; k < p.size; ++k)
    if (p.M[k] == 0 && p.a[k] == 0) {
      present += p.direction[k] * p.direction[k];
      ++count;
    }
  for (int64_t k = 0; k < p.size; ++k) {
    if (p.M[k] > 0) {
      p.x[k] = p.a[k] / p.M[k];
      continue;
    }
    double share = present > 0 ? p.direction[k] * p.direction[k] / present : 1.0 / count;
    p.x[k] = std::sqrt(excess * share);
  }
}

void ctxc::detail::solveLeast(const UnitProblem &p) {
  bool hasSink = freePoints(p.size, p.a, p.M, p.work);
  double total = sum(p.work, p.size), excess = 1 - total;
  constexpr double fits = 1e-14;
  if (excess < -fits)
    shrink(p, total);
  else if (excess > fits && hasSink)
    sink(p, excess);
  else if (excess > fits)
    Growing(p, excess).solve();
  else
    for (int64_t k = 0; k < p.size; ++k)
      p.x[k] = p.M[k] > 0 ? p.a[k] / p.M[k] : 0;
  normalizeResult(p);
}
