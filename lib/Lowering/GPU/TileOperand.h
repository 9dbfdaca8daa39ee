// One operand of a tile kernel on its way from device memory to shared memory: `height` vectors, of
// which `tileDepth` numbers along k are held at a time, as float32.
//
// In shared memory a vector is tileDepth / 4 pieces of four numbers. Piece q of vector i lies at 4
// i + (q xor (i / 2 mod 4)). With this swizzle all 32 banks are touched once both when eight lanes
// read the same q of eight consecutive vectors (to multiply), and when they write all pieces of two
// vectors, or four of bfloat16 (to fill the buffer).
#ifndef CTXC_LIB_LOWERING_GPU_TILEOPERAND_H
#define CTXC_LIB_LOWERING_GPU_TILEOPERAND_H

#include "lib/Lowering/GPU/KernelWriter.h"

namespace ctxc::gpu_lowering {

constexpr int64_t tileDepth = 16;

class TileOperand {
public:
  /// Loop `k` of the nest is the reduction; the loops `vectors` together number the vectors.
  /// `written` is the root of the result, whose buffer is accessed element by element.
  TileOperand(KernelWriter &w, const Access &access, llvm::ArrayRef<Extent> loops,
              llvm::ArrayRef<size_t> vectors, size_t k, int64_t height, mlir::Value written);

  /// Sets the tile's first vector. `indices` has one entry for each loop, of which only the batch
  /// loops are used. Beyond the last vector, the last vector is repeated.
  void enter(mlir::Value first, llvm::ArrayRef<mlir::Value> indices);

  /// Loads this thread's share of the numbers from k = tileDepth · tile on. With `partial`, the
  /// last k may lie inside the tile, and zeros follow it.
  llvm::SmallVector<mlir::Value> load(mlir::Value tile, bool partial);
  /// Stores what was loaded into one of the two buffers, whose first piece is `start`.
  void put(llvm::ArrayRef<mlir::Value> loaded, mlir::Value start);
  /// Piece `q` of vector `lane` + 16 i, where `lane` < 16.
  mlir::Value piece(mlir::Value lane, int64_t i, mlir::Value q, mlir::Value start);

  /// The number of pieces of one buffer.
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
  bool whole;      ///< whether 16 bytes are read at once
  int64_t numbers; ///< how many a part has, which a thread reads at once
  int64_t parts;   ///< parts of a tile; each thread takes every `threads`-th
  mlir::Value shared;
  struct Part {
    mlir::Value exists, vector, first, start; ///< first: index of its first number
  };
  llvm::SmallVector<Part> own;
  llvm::DenseMap<int64_t, mlir::Value> readPlaces;
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_TILEOPERAND_H
