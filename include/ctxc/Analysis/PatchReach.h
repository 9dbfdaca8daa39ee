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
    Thin,     ///< into a set of `dimensions` dimensions
    OneSided, ///< each entry up to a half line
    Free
  };
  Kind kind = Fixed;
  double distance = 0;      ///< Bounded: the number, without `factors`
  std::string distanceText; ///< Bounded: how it comes about, "2·√640"
  std::string factors;      ///< Bounded: norms of fixed parameters, "·‖m‖∞"
  int64_t dimensions = 0;   ///< Thin
  bool positive = true;     ///< OneSided: bounded below, the direction being known
  llvm::SmallVector<mlir::Operation *, 2> origins; ///< the ops that bind it

  static Reach fixed() { return {}; }
  static Reach free();
};

class PatchReach {
public:
  PatchReach(const BlockGraph &graph, const Sites &sites);
  const Reach &reach(mlir::Value value) const { return table.find(value)->second; }

private:
  Reach transfer(mlir::Operation *op) const;
  Reach ofParameter(xf::ParamOp param) const;

  const Sites &sites;
  llvm::DenseMap<mlir::Value, Reach> table;
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_PATCHREACH_H
