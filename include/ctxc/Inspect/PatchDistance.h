//===- PatchDistance.h - inner products and distances of patches ----------===//
//
// Two patches of one model are compared as vectors of all its parameters (Frobenius), separately
// for matrices and vectors, without forming a matrix:
//
//   ⟨u₁ v₁ᵀ, u₂ v₂ᵀ⟩   = (u₁·u₂)(v₁·v₂)
//   u₁ v₁ᵀ − u₂ v₂ᵀ    = (u₁ − u₂) v₁ᵀ + u₂ (v₁ − v₂)ᵀ
//
// The second stays accurate if two patches are close, where a difference of squared norms would
// lose its digits. A parameter that one of the two does not change counts as a change of zero
// there.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_INSPECT_PATCHDISTANCE_H
#define CTXC_INSPECT_PATCHDISTANCE_H

#include "ctxc/Program/Patch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <utility>

namespace ctxc {

/// ⟨a, b⟩ of two changes of one parameter, of the same kind.
double innerProduct(const ParameterPatch &a, const ParameterPatch &b);

/// ‖a − b‖² of two changes of one parameter, of the same kind.
double squaredDistance(const ParameterPatch &a, const ParameterPatch &b);

/// One number for the matrices of a patch, and one for its vectors. (A delta of a parameter with
/// two dimensions or more counts as a matrix, as in PatchNorms.h.)
struct OfBoth {
  double matrix = 0, vector = 0;
};

/// The cosine of the angle between two patches, in [−1, 1]; none if one of them is zero.
struct PatchCosine {
  std::optional<double> matrix, vector;
};

/// The layer of a parameter; −1: none.
using LayerOf = llvm::function_ref<int64_t(llvm::StringRef parameter)>;

/// The cosine of two whole patches, and layer by layer.
struct PatchCosines {
  PatchCosine total;
  std::vector<PatchCosine> layers;
};
PatchCosines cosines(const Patch &a, const Patch &b, int64_t layers, LayerOf layerOf);

/// ‖a − b‖ over all layers together.
OfBoth distance(const Patch &a, const Patch &b);

/// The cosine of two vectors of the same size; none if one of them is zero.
std::optional<double> cosine(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b);

} // namespace ctxc

#endif // CTXC_INSPECT_PATCHDISTANCE_H
