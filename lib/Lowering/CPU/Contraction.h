// The code of one contraction, y[s, m] = Σ_k W[m, k] x[s, k], as a function over a range of W's
// rows. The caller's threads divide all rows among them.
//
// Few vectors (decoding: S is 1, or 2 when the full and the reduced run go together) are bound by
// memory bandwidth. The range is cut into equal access streams, and a tile takes one row of each.
// Each stream thus runs through memory in one direction over the whole range, which the processor's
// prefetchers follow best. (Tiles of adjacent rows make short streams that start anew every few
// kilobytes; they reached half of that bandwidth for bfloat16.) A row that is loaded serves both
// vectors.
//
// As long as all x stay in the first-level cache beside W, which holds on a Zen 4 when they take
// less than 16 KB, four streams without prefetch are best: two are as fast with one vector and
// up to an eighth slower with two, eight are slower, and prefetches cost a tenth to a fifth
// where memory is fast. Longer rows of W evict x from the cache, and reloading x delays the
// loads of W: at 2 × 2816 only half of the memory bandwidth was reached. For these a tile has as
// many streams or more, which share each load of x, and W is prefetched into the second-level
// cache 4 KB ahead: this is 1.3 to 1.9 times as fast with two vectors, and 1.2 to 1.5 times with
// one vector of 4096 or more.
//
// On a Sapphire Rapids two streams read a matrix in bfloat16 or in blocks at 70 % of memory's
// speed, and at 90 to 100 % where their lines are asked for ahead. On a Zen 3, whose registers
// have eight lanes, four streams are a fifth faster than two, and eight are the fastest for long
// rows, without prefetches: with fewer, each addition to a row's only register waits for the one
// before it. So the target says how each kind of matrix is read, and from which length on rows
// are long (Readings.h): by default as the processors on which that was measured read fastest,
// and otherwise as a measurement on the machine found. It changes no sum.
//
// Many vectors (a prompt) are bound by arithmetic. A panel of rows, copied side by side as float32,
// stays in the second-level cache while a block of vectors, which stays there too, is multiplied
// with it. Long rows are multiplied part by part, so that a tile's part of the vectors stays in the
// first-level cache for all rows of the panel. A tile keeps rows × vectors sums in registers, and
// between two parts in memory. Each tile prefetches a few lines of the next panel, so that loading
// a panel takes no extra time: without this, the patches of a prompt's positions, 148 to 192
// vectors at a time, took 3 to 7 % longer.
//
// On request, many vectors are rounded to bfloat16 where W is bfloat16 (RoundedContraction.h), and
// multiplied in tile registers where the processor has them (TileContraction.h); or they, and W,
// are split into bfloat16 numbers for these registers, which is as exact as float32. A matrix that
// is stored transposed, as (in, out), is read in that layout (TransposedContraction.h).
//
// The blocks of a quantised W are decoded in registers (BlockReader.h), where the target has such
// an instruction by looking up what four bits stand for in a table of the block's, for one or two
// vectors right before they are multiplied; for more, into the thread's scratch memory, row by row
// or panel by panel. So is a W whose scales lie apart, by a call, for any number of vectors.
//
// On request, a quantised W is multiplied in integers, with vectors that are rounded to 8 bits
// (IntegerContraction.h). Numbers of four to six bits are multiplied in integers without being
// asked where the processor adds four products of bytes in one instruction: with vectors of 24 bits
// (FixedContraction.h).
//
// Every sum of numbers that are not rounded has one order, which depends neither on S nor on the
// tile nor on the threads. For a matrix that is not transposed the order is: `lanes` partial sums
// by position modulo lanes, each added up along the row; then the second half of them is added to
// the first half, and so on. Fused and separate runs therefore agree to the last bit. With γ = n u
// / (1 − n u), u = 2⁻²⁴ and n = ⌈K / lanes⌉ + log2 lanes, the error of a sum is at most γ Σ_k |W[m,
// k] x[s, k]|.
#ifndef CTXC_LOWERING_CONTRACTION_H
#define CTXC_LOWERING_CONTRACTION_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/Readings.h"
#include "lib/Lowering/CPU/ByteProduct.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

namespace ctxc {

/// How vectors are multiplied.
enum class ContractionScheme {
  Float,        ///< as float32
  Rounded,      ///< many are rounded to bfloat16; W is bfloat16
  RoundedTiles, ///< the same in tile registers
  Split,        ///< many are split (SplitNumbers.h), and multiplied in tile registers
  Integer,      ///< rounded, in integers with those of a quantised W
  Fixed         ///< the same in fixed point, which is as exact as float32
};

struct Contraction {
  mlir::MemRefType weight;       ///< f32, bf16 or f16, with rows one after the other in memory
  mlir::RankedTensorType stored; ///< the type of a quantised W; otherwise null
  int64_t lanes, registers;      ///< of the target
  ContractionScheme scheme = ContractionScheme::Float;
  bool transposed = false;                     ///< W is stored as (in, out)
  ByteProducts products = ByteProducts::Plain; ///< of the target
  Readings readings = {};                      ///< of the target

  /// Of a quantised W, for few vectors.
  const Reading &readingOfBlocks() const {
    auto format = mlir::cast<xf::QuantizedType>(stored.getElementType());
    return format.getBlockElements() == 256 ? readings.kBlocks : readings.blocks;
  }
  /// Whether it reads its vectors in another type than float32, if there are many of them or
  /// always.
  bool readsRounded() const { return scheme != ContractionScheme::Float; }
  int64_t out() const { return weight.getDimSize(transposed ? 1 : 0); }
  int64_t in() const { return weight.getDimSize(transposed ? 0 : 1); }

  /// From this number of vectors on, the kernel takes the path for many vectors.
  static constexpr int64_t manyVectors = 16;
  /// How many outputs form one unit of work for threads, and how many such units there are. A
  /// transposed matrix with few vectors is divided otherwise (TransposedContraction.h).
  int64_t unit() const;
  int64_t units() const { return llvm::divideCeil(out(), unit()); }
  int64_t elementBytes() const { return weight.getElementTypeBitWidth() / 8; }

  /// How far ahead of the line that is read another is asked for.
  static constexpr int64_t aheadBytes = 4 << 10, lineBytes = 64;

  /// The prefix of the name of every contraction function.
  static constexpr llvm::StringLiteral prefix = "contract_";
  /// Quantised rows longer than this are not supported: a decoded row lies on the stack.
  static constexpr int64_t maxDecoded = 1 << 16;

  /// The struct that the function's first argument points to: W, x, y, S; for a transposed matrix
  /// also memory for the sums of its blocks; and for rounded or split vectors those
  /// (RoundVectors.h).
  mlir::LLVM::LLVMStructType frameType(mlir::MLIRContext *context) const;

  /// Adds `name`(frame, begin, end) to the module. It computes units begin to end of y for all
  /// vectors.
  mlir::func::FuncOp emit(mlir::ModuleOp module, llvm::StringRef name, mlir::Location loc) const;
};

} // namespace ctxc

#endif // CTXC_LOWERING_CONTRACTION_H
