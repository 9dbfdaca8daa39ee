// The functions to which the attention of a kernel is lowered, of a frame and a range of units, and
// their calls (LowerAttention.cpp).
#ifndef CTXC_LIB_LOWERING_CPU_ATTENTIONEMITTER_H
#define CTXC_LIB_LOWERING_CPU_ATTENTIONEMITTER_H

#include "lib/Lowering/CPU/RoundedAttention.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <string>

namespace ctxc {

class AttentionEmitter : RoundedAttention {
public:
  AttentionEmitter(kernel::AttentionOp op, const CpuTarget &target, int64_t number);

  void lower();

private:
  /// A function of the frame and of a range of units, at whose start the builder is then.
  struct Function {
    mlir::func::FuncOp function;
    Value begin, end;
  };
  Function beginFunction(llvm::StringRef suffix);
  /// What the frame holds.
  Values crossing() {
    return llvm::to_vector(llvm::concat<const Value>(Values(op->getOperands()), tiles));
  }
  /// How many rows share converted or cached slots: those of a tile, and of a block of tiles.
  struct Shape {
    bool isRounded;
    int64_t queries; ///< of a tile, at most
    int64_t tileRows, tiles;
    int64_t blockRows() const { return tiles * tileRows; }
  };
  Shape shapeOf(bool isRounded);
  /// Memory for a tile of queries and of slots, and for a block's results so far.
  struct Memory {
    Value scores, keys, values;
    TileResults tile;
    Running running;
  };
  mlir::func::FuncOp writeRows() { return writeBlocks("_rows", shapeOf(false)); }
  mlir::func::FuncOp writeRounded() { return writeBlocks("_rounded", shapeOf(true)); }
  mlir::func::FuncOp writeBlocks(llvm::StringRef suffix, const Shape &shape);
  void writeBlock(const Shape &shape, Value unit, const Memory &memory);
  Value unitsOf(const Shape &shape);
  /// A unit of work of a single row: some groups and a tile of slots.
  struct UnitOfOne {
    Queries queries;
    Value from, to;
    TileResults results;
  };
  UnitOfOne unitOfOne(Value unit);
  int64_t slotsOfPart();
  /// The softmax of a unit of a single row, 16 slots after the other: of each query the largest of
  /// every 16th score of the unit whose keys are multiplied, and for that whose values are, what is
  /// subtracted from scores, and the sums of every 16th power.
  struct Softmax {
    Value largest, subtracted, sums;
  };
  Value present(const UnitOfOne &unit, Value t);
  void startScores(const UnitOfOne &unit, const Softmax &softmax);
  void addScores(const UnitOfOne &unit, Value t, Value scores, const Softmax &softmax);
  void finishScores(const UnitOfOne &unit, const Softmax &softmax);
  void addPowers(const UnitOfOne &unit, Value t, Value scores, const Softmax &softmax);
  void finishPowers(const UnitOfOne &unit, const Softmax &softmax);
  mlir::func::FuncOp writeOne();
  mlir::func::FuncOp writeMerge();
  Value numbers(llvm::ArrayRef<int64_t> shape);

  /// The first slot that row `row` sees.
  Value firstSeen(Value row);
  /// The first slot of a single row's first tile.
  Value firstOfOne() { return multiples(firstSeen(index(0)), slotsOfTile); }
  /// How many tiles a single row sees.
  Value tilesOfOne() {
    return over(add(sub(slots, firstOfOne()), index(slotsOfTile - 1)), slotsOfTile);
  }
  /// How many slots rows before `end` see at most.
  Value seenBefore(Value end) { return op.getCausal() ? add(sub(slots, rows), end) : slots; }

  mlir::func::FuncOp kernel;
  std::string name;
  int64_t heads; ///< of a group, that a unit of work has; the last one may have fewer
  int64_t parts; ///< into which a group's heads are divided
  int64_t unitGroups;
  Value rows, slots; ///< how many there are, in the function that is being written
  Values tiles;      ///< a single row's results of each tile: largest, total, mixed
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_ATTENTIONEMITTER_H
