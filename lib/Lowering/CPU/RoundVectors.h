// Rounds the vectors of contractions ahead of the contractions, once for all that read them: to
// bfloat16, or to several parts in bfloat16 (SplitNumbers.h), in the loop over rows that computes
// the vectors, while they are in the caches closest to the core; or to integers of 8 or 24 bits by
// a call, whose rows threads share out where there are many.
#ifndef CTXC_LIB_LOWERING_ROUNDVECTORS_H
#define CTXC_LIB_LOWERING_ROUNDVECTORS_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

class VectorRounder {
public:
  /// With `parts`, the number is not rounded to one number but split into that many.
  explicit VectorRounder(int64_t parts) : parts(parts) {}

  /// The vectors that `contraction` reads, S × K, in a buffer of S × `parts` × `stride(K)` bfloat16
  /// numbers. The numbers from K up to the next multiple of `alignment` are zero.
  mlir::Value roundedFor(kernel::ContractOp contraction);

  static constexpr int64_t alignment = 32;
  /// The distance between parts: whole cache lines, and an odd number of them. Rows of one or three
  /// parts are then such a distance apart, too; rows that are a power of two apart would compete
  /// for the same few sets of the cache.
  static int64_t stride(int64_t k);

private:
  struct Rounded {
    mlir::Value numbers;
    mlir::Operation *at; ///< the op that computes it
  };
  int64_t parts;
  llvm::DenseMap<mlir::Value, Rounded> made;
};

/// To integers, in spans of 256 numbers.
class SpanRounder {
public:
  enum Kind {
    Bytes, ///< ctxc_byte_span (ctxc/Numerics/ByteVectors.h)
    Fixed  ///< ctxc_fixed_span (ctxc/Numerics/FixedVectors.h)
  };
  explicit SpanRounder(Kind kind) : kind(kind) {}

  /// The vectors that `contraction` reads, S × ⌈K / 256⌉ spans, as a buffer of bytes.
  mlir::Value roundedFor(kernel::ContractOp contraction);

  /// The bytes of one vector of K numbers.
  static int64_t stride(Kind kind, int64_t k);
  /// The address of byte `offset` of span `span` of vector `vector`; `vectors` is the buffer's.
  static mlir::Value at(mlir::OpBuilder &b, mlir::Location loc, Kind kind, int64_t k,
                        mlir::Value vectors, mlir::Value vector, mlir::Value span, int64_t offset);

private:
  /// The same for vectors `x`, ahead of `reader`, which is an op of the kernel's block.
  mlir::Value roundedFor(mlir::Value x, mlir::Operation *reader);
  /// The module's function (frame, first, last) that rounds some of the vectors.
  mlir::func::FuncOp function(mlir::ModuleOp module, mlir::Location loc);

  struct Rounded {
    mlir::Value spans;
    mlir::Operation *at; ///< the op that computes it
  };
  Kind kind;
  llvm::DenseMap<mlir::Value, Rounded> made;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROUNDVECTORS_H
