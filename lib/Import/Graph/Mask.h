//===- Mask.h - which tokens a mask of scores lets a token see --------------===//
//
// A mask is a value of (…, tokens, tokens) that depends on positions alone. Its entry at row i and
// column j is followed through the ops that make it, as one of two things:
//
//   a line     r i + c j + k      what counts positions
//   steps      f(i − j)           piecewise constant: what comparisons of lines give
//
// so that what is found holds of any number of tokens. The tokens of a run are those of one
// sequence, with consecutive positions.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_MASK_H
#define CTXC_IMPORT_MASK_H

#include "ctxc/Analysis/TokenAxes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

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

/// What a mask adds to scores, or a flag of it, for each i − j; none where it is another function,
/// or of an op that is not known here, which `obstacle` then names.
std::optional<Steps> stepsOf(mlir::Value mask, const TokenAxes &axes, std::string &obstacle);

/// The number that each entry of `value` is, for any token; none where they differ, or depend on
/// what is read.
std::optional<double> numberIn(mlir::Value value, const TokenAxes &axes);

/// The tokens that a token sees.
struct Sight {
  bool bidirectional = false;
  int64_t window = 0; ///< with itself; 0 is all before it
};
/// None where they are others than an xf.attention may see. `seen` is 1 where i sees j.
std::optional<Sight> sightOf(const Steps &seen);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_MASK_H
