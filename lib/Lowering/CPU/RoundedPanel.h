// A panel of a matrix W: some rows of it, and some columns, copied so that pairs of adjacent
// bfloat16 numbers of adjacent rows lie side by side. That is how products of pairs read a matrix,
// in vectors (RoundedContraction.h) and in tiles (TileContraction.h). A matrix whose numbers are
// split has a plane in the panel for each part (SplitNumbers.h).
#ifndef CTXC_LIB_LOWERING_ROUNDEDPANEL_H
#define CTXC_LIB_LOWERING_ROUNDEDPANEL_H

#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/RoundedContraction.h"

namespace ctxc {

class RoundedPanel : protected LoopBuilder {
protected:
  /// The largest panel, in bytes and in elements of a row; and the number of groups that are
  /// multiplied together.
  struct Limits {
    int64_t bytes, length, together;
  };
  RoundedPanel(mlir::OpBuilder &b, mlir::Location loc, const RoundedOperands &operands,
               int64_t lanes, const Limits &limits);

  /// Rows `from` to `to`, columns `column` to `column` + `count`.
  struct Part {
    Value from, to, column, count;
    Value isFirst; ///< whether it is the first panel of its rows
  };
  /// Calls `compute` with each part of rows `begin` to `end`, which is then in the panel. All
  /// columns of some rows come before other rows.
  void forEachPart(Value begin, Value end, llvm::function_ref<void(const Part &)> compute);

  /// The groups of `lanes` rows of a part.
  Value groupsOf(const Part &part);
  /// The first row of a group, and a mask of its rows that the part has.
  Value rowOf(const Part &part, Value group) { return add(part.from, times(group, lanes)); }
  Value presentRows(const Part &part, Value first) {
    return mask(lanes, sub(part.to, least(first, part.to)));
  }
  /// The pairs of a row of the part, up to a whole register of them; those behind the part are
  /// zero.
  Value pairsOf(const Part &part) {
    return times(over(add(part.count, index(width - 1)), width), lanes);
  }

  mlir::VectorType pairs() { return mlir::VectorType::get({lanes}, b.getI32Type()); }
  mlir::VectorType numbers() { return mlir::VectorType::get({width}, b.getBF16Type()); }
  /// The address of memory on the thread's stack.
  Value allocate(mlir::Type element, int64_t count);
  Value mask(int64_t size, Value count) {
    return mlir::vector::CreateMaskOp::create(b, loc, mlir::VectorType::get({size}, b.getI1Type()),
                                              count);
  }

  RoundedOperands given;
  int64_t lanes, width, in;
  int64_t length;      ///< elements of a row in a panel, a multiple of a register's
  int64_t panelGroups; ///< groups of `lanes` rows in a panel
  int64_t planes;      ///< parts of a number of W
  Value memory;        ///< the panel's address: plane × group × pair × row in the group

private:
  void copy(const Part &part);
  void decode(const Part &part, Value group);
  void copyPairs(const Part &part, Value group, Value k, Value mask);
  void interleaveRows(const Part &part, Value group, Value pair);
  void toPlane(int64_t plane, Value pairs, Value group, Value pair);

  int64_t together;
  mlir::Type element; ///< of W
  Value panel;        ///< the panel as pairs
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_ROUNDEDPANEL_H
