//===- MaterializedWeights.h - weights with a patch added -----------------===//
#ifndef CTXC_PROGRAM_MATERIALIZEDWEIGHTS_H
#define CTXC_PROGRAM_MATERIALIZEDWEIGHTS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Program/Patch.h"
#include "ctxc/Program/Weights.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <unordered_map>
#include <vector>

namespace ctxc {

/// Reuses the memory of one token's patched tensors for those of the next token: the system clears
/// new memory page by page, which takes longer than adding a patch.
class WeightMemory {
public:
  using Bytes = std::vector<uint8_t>;
  /// `size` bytes of any content.
  Bytes take(size_t size);
  void giveBack(Bytes bytes);

private:
  std::unordered_multimap<size_t, Bytes> spare; ///< by size
};

/// The weights with a patch added, in float64, and rounded to the storage type.
class MaterializedWeights : public Weights {
public:
  /// All arguments must outlive this object. Numbers do not depend on `threads`.
  MaterializedWeights(Weights &original, const Patch &patch, const ParallelFor &threads = {},
                      WeightMemory *memory = nullptr);
  ~MaterializedWeights() override;
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override;
  /// Also null for a tensor that the patch changes.
  llvm::Expected<const void *> getPart(llvm::StringRef name, mlir::RankedTensorType type,
                                       llvm::ArrayRef<ElementRun> runs) override;
  llvm::Expected<std::string> hash() override { return original.hash(); }

private:
  Weights &original;
  ParallelFor threads;
  WeightMemory *memory;
  /// The changes of each tensor, whole or of a slice.
  llvm::StringMap<std::vector<std::pair<std::optional<int64_t>, const ParameterPatch *>>> patches;
  llvm::StringMap<std::pair<mlir::Type, WeightMemory::Bytes>> made;
};

/// Whether the sizes of a stored patch agree with each other and with `shape`.
llvm::Error checkSizes(const ParameterPatch &patch, llvm::ArrayRef<int64_t> shape);

} // namespace ctxc

#endif // CTXC_PROGRAM_MATERIALIZEDWEIGHTS_H
