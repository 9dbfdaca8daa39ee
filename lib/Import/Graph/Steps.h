//===- Steps.h - piecewise constant functions of a distance -----------------===//
#ifndef CTXC_IMPORT_STEPS_H
#define CTXC_IMPORT_STEPS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <variant>

namespace ctxc::pt2 {

/// A piecewise constant function of an integer.
class Steps {
public:
  explicit Steps(double value = 0) { from[std::numeric_limits<int64_t>::min()] = value; }
  /// `at`, which is constant before `edge`, and behind it.
  static Steps around(int64_t edge, llvm::function_ref<double(int64_t)> at);
  static Steps merged(const Steps &a, const Steps &b,
                      llvm::function_ref<double(double, double)> join);

  double at(int64_t place) const { return std::prev(from.upper_bound(place))->second; }
  void set(int64_t place, double value) { from[place] = value; }
  /// The places at which another value begins, each with it.
  const std::map<int64_t, double> &parts() const { return from; }

private:
  std::map<int64_t, double> from;
};

/// r i + c j + k.
struct Line {
  double row = 0, column = 0, number = 0;
  /// By a number that is not known, and is the same for all i and j.
  bool isShifted = false;
  /// Where it is not 0: in place of c j, this times the product of c and j, where j and the product
  /// are rounded to bfloat16.
  double rounded = 0;
  bool isNumber() const { return !row && !column && !isShifted; }
  /// Whether it counts rows, or columns: i + k, or j + k.
  bool isCount() const {
    return !isShifted && !rounded && ((row == 1 && !column) || (!row && column == 1));
  }
};

using Entry = std::variant<Line, Steps>;
/// What a function of two numbers is.
enum class Form { Sum, Difference, Product, Quotient, Comparison, Other };
/// f of two entries: of two lines where f is a sum or a difference, or compares two that differ by
/// a distance; of a line and a factor; of steps, and of numbers. None of others.
std::optional<Entry> join(const Entry &a, const Entry &b,
                          llvm::function_ref<double(double, double)> f, Form form);

/// The tokens that a token sees.
struct Sight {
  bool bidirectional = false;
  int64_t window = 0; ///< with itself; 0 is all before it
};
/// None where they are others than an xf.attention may see. `seen` is 1 where i sees j.
std::optional<Sight> sightOf(const Steps &seen);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_STEPS_H
