//===- PatchNorms.h - how large a patch is, layer by layer ----------------===//
//
// The paper's "matrix update norm" (Frobenius) and "vector update norm" (L2),
// absolute and relative to the parameters that are patched.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_PATCHNORMS_H
#define CTXC_VERIFY_PATCHNORMS_H

#include "ctxc/Program/Executor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <mutex>

namespace ctxc {

/// Norms of a set of patches, separately for matrices and vectors: √ of the sum of the squared
/// Frobenius (L2) norms. A relative norm is divided by the norm of the stored parameters; it is 0
/// if these are all zero.
struct PatchNorm {
  double matrix = 0, matrixRelative = 0;
  double vector = 0, vectorRelative = 0;
  /// The largest of one parameter, relative to it; of a parameter that is zero, its own.
  double largest = 0;
};

/// Why a patch this large shows nothing: it is made of roundings (PatchSize.h). Empty if it is not.
std::string whyTooLarge(const PatchNorm &norm);

/// What is known about one layer's patch.
struct LayerReport {
  PatchNorm norm;
  LayerObligations obligations;
  /// Predicted replay error of the layer's output, in units of that output.
  double replayError = 0;
  double float32Error = 0; ///< the same for a program in float32
  double outputNorm = 0;   ///< ‖x_l‖ of the layer's output
};

/// Squared norms of stored parameters, by name, each computed once, for one set of weights in
/// one storage type. Several PatchNorms may share them, even in several threads.
struct KnownNorms {
  std::mutex mutex;
  llvm::StringMap<double> squared;
};

/// Knows the layer and the norm of each stored parameter that a patch can name.
class PatchNorms {
public:
  explicit PatchNorms(std::shared_ptr<KnownNorms> known = std::make_shared<KnownNorms>())
      : known(std::move(known)) {}
  virtual ~PatchNorms() = default;

  /// Squared Frobenius norm of the stored parameter; read once, then remembered.
  llvm::Expected<double> squaredNorm(llvm::StringRef parameter);

  /// The layer that reads the parameter; −1 if none does.
  virtual int64_t layerOf(llvm::StringRef parameter) const = 0;

protected:
  virtual llvm::Expected<double> computeSquaredNorm(llvm::StringRef parameter) = 0;

private:
  std::shared_ptr<KnownNorms> known;
};

/// ‖u‖² ‖v‖² = ‖u vᵀ‖²_F of a rank1 patch, ‖Δ‖² of a delta.
double squaredNorm(const ParameterPatch &patch);

/// The norms of each of `layers` layers, and of all together. Parameters that belong to no layer
/// count only in the total. A delta of a parameter with two dimensions or more counts as a matrix.
struct PatchNormTable {
  std::vector<PatchNorm> layers;
  PatchNorm total;
};
llvm::Expected<PatchNormTable> measure(const Patch &patch, int64_t layers, PatchNorms &norms);

} // namespace ctxc

#endif // CTXC_VERIFY_PATCHNORMS_H
