// A tile of y[s, m] = Σ_k W[m, k] x[s, k]: some rows of a matrix that is stored as (out, in), with
// some vectors, whose sums stay in registers.
#ifndef CTXC_LIB_LOWERING_CPU_ROWTILES_H
#define CTXC_LIB_LOWERING_CPU_ROWTILES_H

#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/QuantizedRows.h"
#include "lib/Lowering/CPU/RowContraction.h"

namespace ctxc {

/// Emits at the insertion point of `b`.
class RowTiles : protected LoopBuilder {
protected:
  RowTiles(mlir::OpBuilder &b, mlir::Location loc, const Contraction &c, const RowOperands &given)
      : LoopBuilder(b, loc), c(c), accumulator(mlir::VectorType::get({c.lanes}, b.getF32Type())),
        w(given.w), x(given.x), y(given.y), rows(given.rows), address(given.address),
        scratchAddress(given.scratchAddress), scratch(given.scratch) {}

  int64_t lineNumbers() const { return Contraction::lineBytes / c.elementBytes(); }
  /// Emits reads of a quantised W.
  QuantizedRows quantized() { return {b, loc, c, address, scratchAddress, scratch}; }

  struct Tile {
    Value matrix;                  ///< W, or rows of it in float32; null where blocks are read
    llvm::SmallVector<Value> rows; ///< rows of the matrix
    llvm::SmallVector<Value> outputRows; ///< the columns of y that they become
    Value vector;                        ///< index of the tile's first vector
    int64_t count;                       ///< how many vectors
    bool isPrefetched = false;           ///< whether lines of the matrix are prefetched
    llvm::SmallVector<QuantizedRows::Row> blocks = {}; ///< the rows of a quantised W
    Value place = {};                                  ///< in a panel: of its first sums in `parts`
  };

  /// Computes the tile's part of y.
  void compute(const Tile &tile);

  // The same in steps along k. Values are the sums of a tile, those of one row of W side by side;
  // each has partial sums in its lanes.
  Values zeroSums(const Tile &tile) {
    return Values(tile.rows.size() * tile.count, zeros(accumulator));
  }
  /// The sums behind columns `from` to `to`, whose distance is a multiple of `stride`, which is one
  /// of the lanes.
  Values steps(Values sums, const Tile &tile, Value from, Value to, int64_t stride);
  /// The sums behind column `from` and all that follow.
  Values rest(Values sums, const Tile &tile, int64_t from);
  Values loadPart(const Tile &tile);
  void storePart(const Tile &tile, const Values &sums);
  /// Adds up the lanes of the sums, and stores the totals in y.
  void store(const Tile &tile, const Values &sums);

  /// Loads as many elements as one register holds in float32.
  Value numbers(Value memref, Value row, Value column, Value mask);
  Value extended(Value vector);

  const Contraction &c;
  mlir::VectorType accumulator;
  Value w, x, y, rows, address, scratchAddress, scratch;
  Value parts; ///< memory for the sums of a panel's tiles, behind a part of the columns

private:
  using WeightsOf = llvm::function_ref<Value(size_t row)>;
  Values multiply(mlir::ValueRange sums, const Tile &tile, Value k, Value mask, WeightsOf w);
  Values step(mlir::ValueRange sums, const Tile &tile, Value k, Value mask);
  using Readers = llvm::SmallVector<std::unique_ptr<BlockReader>>;
  void multiplyInTurn(Values &sums, const Tile &tile, Value first, int64_t columns,
                      int64_t together, Readers &readers);
  Values sumsOfBlocks(const Tile &tile);
  Values sumsOfBlock(mlir::ValueRange before, const Tile &tile, Value block);
  void storeTotals(const Tile &tile, Value all, int64_t lane, Value vector);
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_ROWTILES_H
