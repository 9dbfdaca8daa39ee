// The code of one contraction, y[s, m] = Σ_k W[m, k] x[s, k], as a function over a range of W's
// rows, which is what the caller's threads share out.
//
// Few vectors (decoding: S is 1, or 2 with both streams) are bound by memory. The range is cut into
// equal streams, and a tile takes one row of each: so each stream runs through memory in one
// direction over the whole range, which is what the processor's prefetchers follow best. (Tiles of
// adjacent rows, short streams that start anew every few kilobytes, reached half of that for
// bfloat16.) A row that is loaded serves two vectors.
//
// While all x stay in the first-level cache, which less than 8 KB of them do, two streams are best.
// (Four are as fast for float32 and a tenth slower for bfloat16, eight slower still; lines asked
// for ahead cost a tenth to a fifth.) 8 KB do too where a thread reads all of W: with two vectors
// of 1024 it takes a tenth less than with lines asked for; one of several threads, which may share
// a core, takes less or more by turns. Longer rows of W drive x out, and the fetches of x hold up
// those of W: half of memory's speed was left at 2 × 2816. There a tile has more streams, which
// share a fetch of x, and W's lines are asked for into the second-level cache 4 KB before they are
// needed: 1.3 to 1.9 times as fast with two vectors, 1.2 to 1.5 with one of 4096 and more.
//
// Many vectors (a prompt) are bound by arithmetic. A panel of rows, copied side by side in float32,
// stays in the caches while all vectors pass; a tile keeps rows × vectors sums in registers. Each
// tile asks for a few lines of the next panel, so that memory has no time of its own: without, the
// patches of a prompt's positions, 148 to 192 vectors at a time, took 3 to 7 % longer.
//
// Where asked for, many vectors are rounded to bfloat16 as W is (RoundedContraction.h). A matrix
// that is stored transposed, (in, out), is read as it lies too (TransposedContraction.h).
//
// A quantised W is decoded row by row, or panel by panel, into memory of the thread first.
//
// Every sum of numbers that are not rounded is taken in one order, whatever S, the tile and the
// threads are; of a matrix that is not transposed: `lanes` partial sums by position modulo lanes,
// each along the row, then their halves added, and again. So fused and separate runs agree to the
// last bit. With γ = n u / (1 − n u), u = 2⁻²⁴ and n = ⌈K / lanes⌉ + log2 lanes, a sum is off by at
// most γ Σ_k |W[m, k] x[s, k]|.
#ifndef CTXC_LOWERING_CONTRACTION_H
#define CTXC_LOWERING_CONTRACTION_H

#include "ctxc/Lowering/Kernel.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

namespace ctxc {

struct Contraction {
  mlir::MemRefType weight;       ///< of rows that lie one after the other; f32, bf16, f16
  mlir::RankedTensorType stored; ///< of a quantised W; null else
  int64_t lanes, registers;      ///< of the target
  bool rounded = false;          ///< many vectors are, to bfloat16, as which W is stored
  bool transposed = false;       ///< W is stored as (in, out)

  int64_t out() const { return weight.getDimSize(transposed ? 1 : 0); }
  int64_t in() const { return weight.getDimSize(transposed ? 0 : 1); }

  /// From so many vectors on they are many.
  static constexpr int64_t manyVectors = 16;
  /// How many outputs threads share out together, and how many of these there are, of a matrix that
  /// is not transposed or with many vectors; else see TransposedContraction.h.
  int64_t unit() const;
  int64_t units() const { return llvm::divideCeil(out(), unit()); }
  int64_t elementBytes() const { return weight.getElementTypeBitWidth() / 8; }

  /// What every function of a contraction is named by first.
  static constexpr llvm::StringLiteral prefix = "contract_";
  /// Rows longer than this are not decoded.
  static constexpr int64_t maxDecoded = 1 << 16;

  /// What the function finds at its first argument: W, x, y, S; where it is transposed, memory for
  /// the blocks' sums; and x rounded (RoundVectors.h).
  mlir::LLVM::LLVMStructType frameType(mlir::MLIRContext *context) const;

  /// Adds `name`(frame, begin, end) to the module: units begin to end of y for all vectors.
  mlir::func::FuncOp emit(mlir::ModuleOp module, llvm::StringRef name, mlir::Location loc) const;
};

} // namespace ctxc

#endif // CTXC_LOWERING_CONTRACTION_H
