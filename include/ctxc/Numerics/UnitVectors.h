//===- UnitVectors.h - the inner problems of a post-norm's patch ----------===//
//
// Every inner problem of NormInversion.h depends on magnitudes only, and after
// scaling on the unit sphere only: with B = d ρ, n = √B x,
//
//   a_k = |g_k| / √B,  M_k = |m_k|,  both times one common factor so that the
//   largest of all is 1;  find x ≥ 0 with Σ x² = 1.
//
// The solvers are written once for all machines: V defines the numbers, loops over components, sums
// and branches. The processor's V (lib/Numerics/Lanes.h) computes; a GPU's
// (lib/Lowering/GPU/NormSolver.cpp) emits the kernel that computes. It has
//
//   Number, Condition  of float64, with their operators: of conditions &, | and !
//   Index              a component's number
//   Rough              a number of float32's digits, whose divisions are cheap
//   Vector             a number for each component, in memory
//   infinity, tiny     larger than any number, smaller than any divisor
//   mostRatio          the largest ratio that may be squared
//   guard(x)           x ≥ 0 as a divisor; what a division by 0 gives is not used
//   get, set, each     of one component, and for all of them
//   reduce<Kind…>      sums, maxima and minima of several terms in one pass
//   firstWhere(holds)  the first component of which something holds
//   when, repeat       branches, and loops of carried numbers
//
// and select, min, max, sqrt, abs, square, asNumber and divideRoughly of these types. Sums have
// three orders on the processor (InOrder, Sum, WideSum: one, four and eight lanes), in which its
// results are the same on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_UNITVECTORS_H
#define CTXC_NUMERICS_UNITVECTORS_H

#include <array>
#include <cmath>

namespace ctxc {

/// For the processor's numbers; those of other types are found by their arguments.
namespace unit_solvers {
inline double select(bool condition, double yes, double no) { return condition ? yes : no; }
inline double min(double a, double b) { return b < a ? b : a; }
inline double max(double a, double b) { return a < b ? b : a; }
inline double square(double a) { return a * a; }
inline double asNumber(bool condition) { return condition ? 1 : 0; }
inline float divideRoughly(float a, float b) { return a / b; }
using std::abs;
using std::sqrt;
template <typename Condition, typename... More>
Condition all(const Condition &first, const More &...more) {
  return (first & ... & more);
}
template <typename Condition, typename... More>
Condition any(const Condition &first, const More &...more) {
  return (first | ... | more);
}

template <typename V> struct UnitVectors {
  typename V::Vector a;         ///< |g|, at least one entry positive
  typename V::Vector M;         ///< |m|
  typename V::Vector direction; ///< |data| / ‖data‖: where the excess goes
  typename V::Vector x;         ///< the result
  typename V::Vector work[4];   ///< for the solver
};

/// The excess of Σ x² goes to the `count` components without scale or target. Component k gets a
/// share in proportion to the square of its data (`present` = Σ direction² of these components), so
/// that a run that needs no patch gets none; if the data are zero there, all get equal shares.
template <typename V>
typename V::Number shareOf(V &v, const UnitVectors<V> &p, const typename V::Index &k,
                           const typename V::Number &present, const typename V::Number &count) {
  typename V::Condition has = present > 0;
  return select(has, square(v.get(p.direction, k)) / select(has, present, 1), 1 / max(count, 1));
}

/// Scales x to Σ x² = 1; a zero x becomes `direction`.
template <typename V> void normalizeResult(V &v, const UnitVectors<V> &p) {
  using Number = typename V::Number;
  using Index = typename V::Index;
  Number squares = v.template reduceOne<V::InOrder>([&](Index k) { return square(v.get(p.x, k)); });
  typename V::Condition isSolved = squares > 0;
  Number factor = 1 / sqrt(select(isSolved, squares, 1));
  v.each([&](Index k) {
    v.set(p.x, k, select(isSolved, v.get(p.x, k) * factor, v.get(p.direction, k)));
  });
}

} // namespace unit_solvers
} // namespace ctxc

#endif // CTXC_NUMERICS_UNITVECTORS_H
