// The processor's part of UnitVectors.h: loops over components in vectors, and sums in orders that
// are the same on every machine.
#ifndef CTXC_LIB_NUMERICS_LANES_H
#define CTXC_LIB_NUMERICS_LANES_H

#include "ctxc/Numerics/EachCpu.h"
#include "ctxc/Numerics/UnitSolvers.h"
#include "lib/Numerics/RunHere.h"
#include <algorithm>
#include <limits>
#include <tuple>

namespace ctxc::detail {

/// Calls body(k) for a range of components, of which it reads and writes the k-th alone.
template <typename Body> void loop(int64_t begin, int64_t end, Body body) {
  runHere([=] {
    _Pragma("clang loop vectorize(assume_safety)") for (int64_t k = begin; k < end; ++k)
        [[clang::always_inline]] body(k);
  });
}

/// V of UnitVectors.h.
struct Lanes {
  using Number = double;
  using Condition = bool;
  using Index = int64_t;
  using Rough = float;
  using Vector = double *;
  static constexpr double infinity = std::numeric_limits<double>::infinity(), mostRatio = infinity,
                          tiny = std::numeric_limits<double>::min();
  /// Sums are of one, four and eight lanes.
  enum Kind { InOrder, Sum, WideSum, Largest, Smallest };
  template <size_t count> struct Round {
    std::array<double, count> next;
    bool done;
  };

  int64_t size;
  static constexpr int64_t block = 256; ///< components whose terms are kept

  static double guard(double x) { return x; }
  static float roughly(double x) { return float(x); }
  static double get(const double *x, int64_t k) { return x[k]; }
  static void set(double *x, int64_t k, double value) { x[k] = value; }
  static int64_t none() { return -1; }
  static bool isAt(int64_t k, int64_t index) { return k == index; }

  template <typename Body> void each(Body body) const { loop(0, size, body); }

  template <Kind... kinds, typename Terms> auto reduce(Terms terms) const {
    constexpr size_t count = sizeof...(kinds);
    using Numbers = std::array<double, count>;
    double made[count][block];
    std::tuple<Reduction<kinds>...> reductions;
    for (int64_t begin = 0; begin < size; begin += block) {
      int64_t end = std::min(begin + block, size);
      auto body = [=, &made](int64_t k) {
        Numbers all;
        [[clang::always_inline]] all = terms(k);
        for (size_t i = 0; i < count; ++i)
          made[i][k - begin] = all[i];
      };
      loop(begin, end, body);
      std::apply(
          [&](auto &...each) {
            size_t i = 0;
            (each.add(made[i++], end - begin), ...);
          },
          reductions);
    }
    return std::apply([](const auto &...each) { return Numbers{each.result()...}; }, reductions);
  }
  template <Kind kind, typename Term> double reduceOne(Term term) const {
    return reduce<kind>([=](int64_t k) {
      double made;
      [[clang::always_inline]] made = term(k);
      return std::array<double, 1>{made};
    })[0];
  }
  template <typename Holds> int64_t firstWhere(Holds holds) const {
    double made[block];
    for (int64_t begin = 0; begin < size; begin += block) {
      int64_t end = std::min(begin + block, size);
      loop(begin, end, [=, &made](int64_t k) {
        bool is;
        [[clang::always_inline]] is = holds(k);
        made[k - begin] = is ? 1 : 0;
      });
      const double *found = std::find(made, made + (end - begin), 1);
      if (found < made + (end - begin))
        return begin + (found - made);
    }
    return none();
  }

  template <typename Body> static void when(bool condition, Body body) {
    if (condition)
      body();
  }
  template <typename Then, typename Else>
  static auto when(bool condition, Then then, Else otherwise) {
    return condition ? then() : otherwise();
  }
  template <size_t count, typename Body>
  static std::array<double, count> repeat(int most, std::array<double, count> carried, Body body) {
    for (int i = 0; i < most; ++i) {
      Round<count> round = body(carried);
      carried = round.next;
      if (round.done)
        break;
    }
    return carried;
  }

  /// Adds up numbers block by block: the last ones, fewer than there are
  /// lanes, are added in the first lane.
  template <Kind kind> struct Reduction {
    static constexpr int width = kind == InOrder ? 1 : kind == Sum ? 4 : 8;
    double lanes[width];

    Reduction() {
      std::fill(lanes, lanes + width,
                kind == Largest    ? -infinity
                : kind == Smallest ? infinity
                                   : 0);
    }
    static double both(double a, double b) {
      return kind == Largest ? std::max(a, b) : kind == Smallest ? std::min(a, b) : a + b;
    }
    void add(const double *x, int64_t size) {
      int64_t k = 0;
      for (; k + width <= size; k += width)
        for (int lane = 0; lane < width; ++lane)
          lanes[lane] = both(lanes[lane], x[k + lane]);
      for (; k < size; ++k)
        lanes[0] = both(lanes[0], x[k]);
    }
    double result() const {
      if (kind == Sum)
        return (lanes[0] + lanes[1 % width]) + (lanes[2 % width] + lanes[3 % width]);
      double all = lanes[0];
      for (int lane = 1; lane < width; ++lane)
        all = both(all, lanes[lane]);
      return all;
    }
  };
};

} // namespace ctxc::detail

#endif // CTXC_LIB_NUMERICS_LANES_H
