// Numbers of a quantised matrix, decoded as they are read.
//
// A matrix is bytes in device memory (ctxc/Support/BlockFormats.def; formats whose scales are
// stored separately have them in their blocks there), which are read as words of 32 bits. Four
// numbers whose index begins at a multiple of four share their scales in every format, and their
// bits lie in the same places of four consecutive bytes. A number is the format's formula in
// float32 in its own order (ctxc/Numerics/BlockFormats.h), as on the processor.
#ifndef CTXC_LIB_LOWERING_GPU_QUANTIZEDNUMBERS_H
#define CTXC_LIB_LOWERING_GPU_QUANTIZEDNUMBERS_H

#include "dialects/XF/XF.h"
#include "lib/Lowering/GPU/KernelWriter.h"

namespace ctxc::gpu_lowering {

/// How the matrix is stored, and the bytes of so many of its numbers, which are whole blocks.
xf::QuantizedType typeOf(kernel::QuantizedOp matrix);
int64_t bytesOf(xf::QuantizedType type, int64_t numbers);

/// Numbers 4 `group` + i, row by row, for each i of `in` (i32, below 4). `words` is the buffer of
/// the matrix, in i32.
llvm::SmallVector<mlir::Value> decode(KernelWriter &w, xf::QuantizedType type, mlir::Value words,
                                      mlir::Value group, mlir::ValueRange in);
/// All four numbers of a group.
llvm::SmallVector<mlir::Value> decodeFour(KernelWriter &w, xf::QuantizedType type,
                                          mlir::Value words, mlir::Value group);

/// A span of a row: 32 numbers for each lane of a subgroup, which decodes the scales of its own 32
/// once; in piece p of the eight, it then has four numbers, as with other weights: 4 (p lanes +
/// lane) and those behind it. All lanes must take part.
class SpanDecoder {
public:
  static constexpr int64_t numbersOfLane = 32, pieces = numbersOfLane / 4;

  /// The span begins with a block, at word `start`.
  SpanDecoder(KernelWriter &w, xf::QuantizedType type, mlir::Value words, mlir::Value start);
  /// Reads piece `piece`, as it is stored.
  mlir::Value read(int64_t piece);
  /// The numbers of a piece that was read.
  llvm::SmallVector<mlir::Value> numbers(int64_t piece, mlir::Value stored);

private:
  mlir::Value toI32(mlir::Value i);

  KernelWriter &w;
  xf::QuantizedType type;
  mlir::Value words, start;
  llvm::SmallVector<mlir::Value> scales; ///< of the lane's 32 numbers
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_QUANTIZEDNUMBERS_H
