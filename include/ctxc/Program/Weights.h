//===- Weights.h - where the values of parameters come from ---------------===//
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

/// Gives each parameter's values, in the storage type that the IR asks for.
class Weights {
public:
  virtual ~Weights() = default;

  /// The tensor stored under `name`, as row-major elements of `type`, which has a static shape:
  /// f32, f16, bf16, or a quantised type, to which nothing is converted. If the file stores that
  /// type, this is mapped memory (if its scales are stored separately, a ctxc_scaled_matrix that
  /// points into it, or an array of them); otherwise a converted copy that this object owns.
  /// Errors: the tensor is missing or has another shape, its type cannot be converted, or a number
  /// is not finite.
  virtual llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) = 0;

  /// Some of the elements that `get` gives, one run of elements after the other, for a process that
  /// needs only these: it spends neither memory nor time on the others. Each run consists of whole
  /// blocks of a quantised type. Null if these weights can give only the whole tensor. Errors:
  /// those of `get`, without errors about the other elements.
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

/// How many bytes `inLargePages` copies if all tensors are used.
uint64_t bytesInLargePages(const Checkpoint &checkpoint);

/// Normally distributed numbers with a fixed seed: matrices with standard deviation 1/√in,
/// everything else with standard deviation 0.3 (with an offset of 1, a typical scale). A
/// parameter's numbers depend only on the seed, its name and its shape; the storage type only
/// rounds them.
std::unique_ptr<Weights> randomWeights(uint64_t seed);

} // namespace ctxc

#endif // CTXC_PROGRAM_WEIGHTS_H
