//===- Reach.h - how far patches can move a value --------------------------===//
//
// The vocabulary of ReachOpInterface: an upper bound on the values that changes of the patchable
// parameters can give a value, for fixed data. Sets of parameters are considered jointly, so that
// the effects of several parameters together are not missed.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_REACH_H
#define CTXC_DIALECTS_XF_REACH_H

#include "dialects/XF/Facts.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace ctxc::xf {

/// The set of values that patches can reach.
///
///   Fixed ⊂ Bounded, Thin, OneSided ⊂ Free      (Free is also "unknown")
struct Reach {
  enum Kind {
    Fixed,    ///< nowhere: it depends on no patchable parameter
    Bounded,  ///< at most `distance` (L2) from its unpatched value
    Thin,     ///< into an affine subspace of `dimensions` dimensions; see `near`, `where`
    OneSided, ///< not to both sides of some direction; see `sign`
    Free
  };
  Kind kind = Fixed;
  /// Bounded: the diameter without `factors`; none if it is not a number times those factors.
  std::optional<double> distance = 0;
  std::string distanceText; ///< Bounded: how `distance` is computed, "2·√640"
  std::string factors;      ///< Bounded: norms of fixed values, "·‖m‖∞"
  int64_t dimensions = 0;   ///< Thin
  bool near = false;        ///< Thin: up to a bounded distance from the subspace
  std::string where;        ///< Thin: the cause, if zeros on an open set are one
  /// OneSided: 1 if each entry is bounded below, −1 if each is bounded above, 0 for any other
  /// direction.
  int sign = 0;
  llvm::SmallVector<mlir::Operation *, 2> origins; ///< the ops that limit it

  static Reach fixed() { return {}; }
  static Reach free();
  /// A ball of this diameter; `text` says how the diameter is computed.
  static Reach bounded(mlir::Operation *op, double distance, std::string text);
  /// An affine subspace, for the reason `where`. Free if it has as many dimensions as `op`'s result
  /// has entries.
  static Reach thin(mlir::Operation *op, int64_t dimensions, llvm::StringRef where = "");
  static Reach oneSided(Reach reach, int sign);
};

/// The reach of the sum of two independent values, which is `op`'s result.
Reach sum(mlir::Operation *op, const Reach &a, const Reach &b);
/// The reach of two independent values side by side, without a bound on the dimensions.
Reach join(const Reach &a, const Reach &b);
/// The reach of the value times a constant.
Reach times(Reach reach, double factor);
/// The reach of the product with a fixed value, entry by entry or as a whole. That value has the
/// facts `facts` and `factorEntries` entries.
Reach byFactor(mlir::Operation *op, Reach reach, const Facts &facts, int64_t factorEntries);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_REACH_H
