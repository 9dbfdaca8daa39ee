// One operand of a tile kernel on its way from the device's memory to that of a block: `height`
// vectors of k, of `tileDepth` numbers at a time, as float32.
//
// In shared memory a vector is tileDepth / 4 pieces of four numbers. Piece q of vector i lies at
// 4 i + (q xor (i / 2 mod 4)): eight lanes that read the same q of eight vectors one after the
// other, as those that compute do, or all pieces of two vectors (four of bfloat16), as those that
// fill do, touch all 32 banks once.
#ifndef CTXC_LIB_LOWERING_GPU_TILEOPERAND_H
#define CTXC_LIB_LOWERING_GPU_TILEOPERAND_H

#include "lib/Lowering/GPU/KernelWriter.h"

namespace ctxc::gpu_lowering {

constexpr int64_t tileDepth = 16;

class TileOperand {
public:
  /// Loop `k` of the nest is summed; loops `vectors` together number the vectors. `written`: the
  /// root of the result, which is accessed number by number.
  TileOperand(KernelWriter &w, const Access &access, llvm::ArrayRef<Extent> loops,
              llvm::ArrayRef<size_t> vectors, size_t k, int64_t height, mlir::Value written);

  /// The tile's first vector; `indices` are of all loops, of which those of the batch count.
  /// Vectors behind the last are the last again.
  void enter(mlir::Value first, llvm::ArrayRef<mlir::Value> indices);

  /// What this thread brings of the numbers from k = tileDepth · tile on; zeros behind the last k,
  /// which may be in the tile where it is `partial`.
  llvm::SmallVector<mlir::Value> load(mlir::Value tile, bool partial);
  /// Puts it into the buffer, of two, of which `start` is the first piece.
  void put(llvm::ArrayRef<mlir::Value> loaded, mlir::Value start);
  /// Piece `q` of vector `lane` + 16 i, where `lane` < 16.
  mlir::Value piece(mlir::Value lane, int64_t i, mlir::Value q, mlir::Value start);

  /// Pieces of one buffer.
  int64_t pieces() const { return height * perVector; }

private:
  static constexpr int64_t perVector = tileDepth / 4;

  bool inPieces(mlir::Value written) const;
  mlir::Value constantTimes(mlir::Value x, int64_t factor);
  mlir::Value place(mlir::Value vector, mlir::Value q);
  mlir::Value read(size_t part, mlir::Value at, mlir::Value first, bool partial);
  mlir::Value number(mlir::Value at);
  mlir::Value when(mlir::Value condition, mlir::Type type, llvm::function_ref<mlir::Value()> body);

  KernelWriter &w;
  const Access &access;
  llvm::ArrayRef<Extent> loops;
  llvm::SmallVector<size_t> vectors;
  size_t k;
  int64_t height;
  mlir::Type element;
  bool whole;      ///< 16 bytes are read at once
  int64_t numbers; ///< of a part: what a thread reads at once
  int64_t parts;   ///< of a tile; a thread takes every `threads`th
  mlir::Value shared;
  struct Part {
    mlir::Value exists, vector, first, start; ///< first: its first number in the vector
  };
  llvm::SmallVector<Part> own;
  llvm::DenseMap<int64_t, mlir::Value> readPlaces;
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_TILEOPERAND_H
