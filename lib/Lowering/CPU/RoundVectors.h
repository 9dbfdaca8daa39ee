// The vectors of contractions, rounded to bfloat16 before: in the loop over the rows that makes
// them, where they are in the caches closest to the core, and once for all contractions of them.
#ifndef CTXC_LIB_LOWERING_ROUNDVECTORS_H
#define CTXC_LIB_LOWERING_ROUNDVECTORS_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

class VectorRounder {
public:
  /// The vectors that `contraction` reads, S × K, in a buffer of S ×
  /// `stride(K)` bfloat16 numbers; those from K up to the next multiple of `alignment` are zero.
  mlir::Value roundedFor(kernel::ContractOp contraction);

  static constexpr int64_t alignment = 32;
  /// Whole lines of the caches, and an odd number of them: rows a power of two apart would all want
  /// the same few places there.
  static int64_t stride(int64_t k);

private:
  struct Rounded {
    mlir::Value numbers;
    mlir::Operation *at; ///< where it is made
  };
  llvm::DenseMap<mlir::Value, Rounded> made;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROUNDVECTORS_H
