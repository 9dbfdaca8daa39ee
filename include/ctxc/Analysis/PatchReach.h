//===- PatchReach.h - how far patches can move a value ---------------------===//
//
// The other half of a verdict: an upper bound on where *any* change of the
// patchable parameters can bring a value, at fixed data. Where the output of a
// block is more narrowly bound than what the context changes, no patch exists
// (Theorem 4, "impossibility", and its relatives). Sets of parameters are taken
// together, so nothing is missed that several narrow sites can do jointly.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_ANALYSIS_PATCHREACH_H
#define CTXC_ANALYSIS_PATCHREACH_H

#include "ctxc/Analysis/Sites.h"

namespace ctxc {

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
};

class PatchReach {
public:
  PatchReach(const BlockGraph &graph, const Sites &sites, const ZeroRange &zeros);
  const Reach &reach(mlir::Value value) const { return table.find(value)->second; }

private:
  Reach transfer(mlir::Operation *op) const;
  Reach ofParameter(xf::ParamOp param) const;
  Reach image(mlir::Operation *op) const;
  Reach assigned(xf::AssignableOpInterface site, const Reach &data) const;
  Reach product(xf::MulOp op, const Reach &lhs, const Reach &rhs) const;
  Reach byFactor(mlir::Operation *op, Reach reach, mlir::Value factor) const;

  const Sites &sites;
  const ZeroRange &zeros;
  llvm::DenseMap<mlir::Value, Reach> table;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_PATCHREACH_H
