//===- Reach.h - how far patches can move a value --------------------------===//
//
// The vocabulary of ReachOpInterface: an upper bound on where any change of the
// patchable parameters can bring a value, at fixed data. Sets of parameters are taken
// together, so nothing is missed that several narrow ones can do jointly.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_XF_REACH_H
#define CTXC_DIALECTS_XF_REACH_H

#include "dialects/XF/Facts.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace ctxc::xf {

/// Where patches can bring a value.
///
///   Fixed ⊂ Bounded, Thin, OneSided ⊂ Free      (Free is also "unknown")
struct Reach {
  enum Kind {
    Fixed,    ///< nowhere: it depends on no patchable parameter
    Bounded,  ///< at most `distance` (L2) from where it is
    Thin,     ///< into an affine subspace of `dimensions` dimensions; see `near`, `where`
    OneSided, ///< not to both sides of some direction; see `sign`
    Free
  };
  Kind kind = Fixed;
  /// Bounded: the number, without `factors`; none where it is not one number times those.
  std::optional<double> distance = 0;
  std::string distanceText; ///< Bounded: how it comes about, "2·√640"
  std::string factors;      ///< Bounded: norms of fixed values, "·‖m‖∞"
  int64_t dimensions = 0;   ///< Thin
  bool near = false;        ///< Thin: up to a bounded distance from the subspace
  std::string where;        ///< Thin: of what zeros it comes, which occur on an open set
  /// OneSided: 1 each entry is bounded below, −1 above, 0 one of these or another side.
  int sign = 0;
  llvm::SmallVector<mlir::Operation *, 2> origins; ///< the ops that bind it

  static Reach fixed() { return {}; }
  static Reach free();
  /// A ball of this diameter; `text` says how it comes about.
  static Reach bounded(mlir::Operation *op, double distance, std::string text);
  /// An affine subspace, for the reason `where`; free where it has all dimensions of
  /// `op`'s result.
  static Reach thin(mlir::Operation *op, int64_t dimensions, llvm::StringRef where = "");
  static Reach oneSided(Reach reach, int sign);
};

/// What two values that move independently reach by their sum, as `op`'s result.
Reach sum(mlir::Operation *op, const Reach &a, const Reach &b);
/// Side by side, without a bound on the dimensions.
Reach join(const Reach &a, const Reach &b);
/// Times a constant.
Reach times(Reach reach, double factor);
/// Times, entry by entry or as a whole, a value that does not move, of which `facts` are
/// known and which has `factorEntries` entries.
Reach byFactor(mlir::Operation *op, Reach reach, const Facts &facts, int64_t factorEntries);

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_REACH_H
