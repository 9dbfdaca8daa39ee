//===- Weights.h - where the numbers of parameters come from --------------===//
#ifndef CTXC_PROGRAM_WEIGHTS_H
#define CTXC_PROGRAM_WEIGHTS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Program/SliceName.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace ctxc {

/// How a parameter's elements are stored, and the corresponding element type: f32 for any type
/// without kernels.
DType storageOf(mlir::Type element);
mlir::Type elementOf(DType dtype, mlir::MLIRContext *context);

/// Consecutive elements of a tensor.
struct ElementRun {
  int64_t begin = 0, count = 0;

  bool operator==(const ElementRun &other) const {
    return begin == other.begin && count == other.count;
  }
};

/// Gives each parameter's numbers, in the storage type that the IR asks for.
class Weights {
public:
  virtual ~Weights() = default;

  /// The tensor stored under `name`, as row-major elements of `type` (f32, f16, bf16, or
  /// quantised, which nothing converts to; static shape). Mapped memory where the file
  /// stores that type (where its scales lie apart, a ctxc_scaled_matrix that points into it, or an
  /// array of them), else a converted copy that this object owns. Errors: missing, another
  /// shape, a type that cannot be converted, a number that is not finite.
  virtual llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) = 0;

  /// Some of the elements that `get` gives, one run after the other: for a process that reads no
  /// others, so that neither its memory nor its time goes to them. Runs consist of whole blocks of
  /// a quantised type. Null where these weights have the tensor as a whole alone. Errors: those of
  /// `get`, of the other elements none.
  virtual llvm::Expected<const void *> getPart(llvm::StringRef name, mlir::RankedTensorType type,
                                               llvm::ArrayRef<ElementRun> runs) {
    return nullptr;
  }

  /// Identifies these weights: the checkpoint's hash, or the seed. Errors: a file that cannot be
  /// read.
  virtual llvm::Expected<std::string> hash() = 0;
};

/// The address of each entry of the first dimension of parameter `name`, whose whole type is
/// `type`. Errors as Weights::get.
llvm::Expected<std::vector<const void *>> getSlices(Weights &weights, llvm::StringRef name,
                                                    mlir::RankedTensorType type);

/// The address of the entry at `index`. Errors as Weights::get.
llvm::Expected<const void *> getSlice(Weights &weights, llvm::StringRef name,
                                      mlir::RankedTensorType type, int64_t index);

class Checkpoint;

/// The weights of a checkpoint, which must outlive the result. With `inLargePages` each tensor is
/// copied when it is first asked for (LargePages.h), and the file's pages are given back.
std::unique_ptr<Weights> checkpointWeights(const Checkpoint &checkpoint, bool inLargePages = false);

/// How many bytes that copies when all tensors are asked for.
uint64_t bytesInLargePages(const Checkpoint &checkpoint);

/// Normally distributed numbers of a fixed seed: matrices with deviation 1/√in, everything else
/// with deviation 0.3 (with an offset of 1, a typical scale). A parameter's numbers
/// depend on the seed, its name and its shape alone; the storage type only rounds them.
std::unique_ptr<Weights> randomWeights(uint64_t seed);

} // namespace ctxc

#endif // CTXC_PROGRAM_WEIGHTS_H
