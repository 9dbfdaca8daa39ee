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
#include "lib/Lowering/GPU/WordWriter.h"

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

/// A span of a row: 32 numbers for each lane of a subgroup, four in each of eight pieces. A lane's
/// numbers of successive pieces lie in the same words where a format has the bits of several
/// numbers in a byte. Lanes with the same scales divide among themselves which of them they decode.
/// All lanes must take part.
class SpanDecoder : WordWriter {
public:
  static constexpr int64_t numbersOfLane = 32, pieces = numbersOfLane / 4;

  /// The span begins with a block, at word `start`.
  SpanDecoder(KernelWriter &w, xf::QuantizedType type, mlir::Value words, mlir::Value start);
  /// The number of the span that is the first of this lane in piece `piece`, a multiple of four.
  mlir::Value first(int64_t piece);
  /// Reads piece `piece`, as it is stored.
  mlir::Value read(int64_t piece);
  /// The numbers of a piece that was read.
  llvm::SmallVector<mlir::Value> numbers(int64_t piece, mlir::Value stored);

private:
  mlir::Value ofLane();
  int64_t ofPiece(int64_t piece) const;

  xf::QuantizedType type;
  mlir::Value words, start;
  int64_t together, apart; ///< how many pieces lie in the same words, and their distance
  int64_t sharing;         ///< how many lanes that follow each other need the same scales
  int64_t perScale;        ///< how many pieces have the same scales
  llvm::SmallVector<mlir::Value> scales; ///< those that this lane decodes for all that share them
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_QUANTIZEDNUMBERS_H
