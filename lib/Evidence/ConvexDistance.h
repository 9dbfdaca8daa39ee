// The distance of a point from a sum of convex sets, with its certificate.
//
//   Y = { c + Σ A_k s_k : s_k ∈ S_k }
//
// For every direction w, ⟨w, y⟩ ≤ ⟨w, c⟩ + Σ h_k(A_kᵀ w) on Y, where h_k is the support
// function of S_k; so a target t with ⟨w, t⟩ beyond that is outside of Y, at least as far as
// the difference (‖w‖ = 1). The largest difference over all w is the distance.
#ifndef CTXC_LIB_EVIDENCE_CONVEXDISTANCE_H
#define CTXC_LIB_EVIDENCE_CONVEXDISTANCE_H

#include "llvm/ADT/SmallVector.h"
#include <Eigen/SparseCore>

namespace ctxc {

using Vector = Eigen::VectorXd;
using Map = Eigen::SparseMatrix<double>;

/// A closed convex set of vectors: a box, with sides that may be infinite, or a ball
/// around 0 in the subspace orthogonal to `normals`.
struct ConvexSet {
  enum Kind { Box, Ball } kind = Box;
  Vector low, high;        ///< Box
  double radius = 0;       ///< Ball
  Eigen::MatrixXd normals; ///< Ball: orthonormal columns; none for the whole ball

  static ConvexSet free(int64_t size);
  /// The nearest point of the set.
  Vector project(const Vector &x) const;
  /// h(w) = sup ⟨w, s⟩; infinite where w leaves the set's polar cone by more than
  /// the `tolerance` of an entry.
  double support(const Vector &w, const Vector &tolerance) const;
};

struct ConvexTerm {
  Map map; ///< A_k
  ConvexSet set;
};

/// Y.
struct ConvexSum {
  Vector constant; ///< c
  llvm::SmallVector<ConvexTerm> terms;

  bool isBounded() const {
    return llvm::all_of(terms, [](const ConvexTerm &term) {
      return term.set.kind == ConvexSet::Ball ||
             (term.set.low.allFinite() && term.set.high.allFinite());
    });
  }
  /// sup ⟨w, y⟩ over Y.
  double support(const Vector &w) const;
};

struct Separation {
  double distance = 0; ///< no point of the sum is nearer to the target: certified by w
  double attained = 0; ///< a point of the sum that is as near; equal but for rounding
  Vector direction;    ///< w, of norm 1; empty where the distance is 0
};

/// How far `target` is from the sum: its free parts are projected out, the rest is
/// solved by accelerated projected gradients. Always sound; `attained` shows how tight.
Separation separate(const ConvexSum &sum, const Vector &target);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_CONVEXDISTANCE_H
