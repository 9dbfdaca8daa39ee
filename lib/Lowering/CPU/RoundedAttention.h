// Attention of many queries over a tile of slots, whose products are of bfloat16 numbers in the
// tile registers of AMX. Queries, keys, powers and values are rounded, or split into several
// numbers (SplitNumbers.h); the softmax and all sums are float32, and tiles of slots are merged as
// everywhere (AttentionTile.h).
//
// A block of queries is converted once. The keys and values of a tile of slots are converted once
// for all queries of a block, and so that pairs of numbers that are multiplied together lie side by
// side: the numbers 2i and 2i + 1 of 16 keys, and one number of 16 values at the slots 2i and
// 2i + 1. Each sum takes 32 numbers of a key, or 32 slots, at a time. Slots behind the last one
// that a query sees have the power 0, so that sums do not depend on how a prompt is divided.
#ifndef CTXC_LIB_LOWERING_CPU_ROUNDEDATTENTION_H
#define CTXC_LIB_LOWERING_CPU_ROUNDEDATTENTION_H

#include "lib/Lowering/CPU/AttentionTile.h"
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "mlir/Dialect/AMX/AMXDialect.h"

namespace ctxc {

class RoundedAttention : protected AttentionTile {
protected:
  RoundedAttention(const mlir::OpBuilder &b, kernel::AttentionOp op, const CpuTarget &target);

  /// The queries of a tile: two registers of them.
  static constexpr int64_t roundedQueries = 32;
  /// Whether products of many queries are rounded or split.
  bool isRounded() const { return queryParts != 0; }
  /// Takes memory on the stack of the function that is being written, for `tiles` tiles of queries.
  void allocateRounded(int64_t tiles);
  /// As many numbers as the mixed values of a query have in memory.
  int64_t roundedOut() const { return outGroups * rowLanes; }

  /// Converts the queries of tile `tile` of the block.
  void roundQueries(const Queries &queries, Value tile);
  /// Converts the keys and values of slots [from, to) of a group, at most slotsOfTile.
  void roundSlots(Value group, Value from, Value to);
  /// Computes what computeTile computes, of converted queries and slots; `to` is at most that of
  /// roundSlots. `scores` is roundedQueries × slotsOfTile.
  void computeRounded(const Queries &queries, Value tile, Value from, Value to, Value scores,
                      const TileResults &results);

private:
  mlir::amx::TileType factors();
  mlir::amx::TileType sumsType();
  llvm::SmallVector<split::Product> products(int64_t others) const;
  void roundKeys(Value group, Value from, Value to);
  void roundValues(Value group, Value from, Value to);
  void roundPowers(const Queries &queries, Value count, Value scores);
  /// How a sum reads its factors: register `i` of part `part`, from number `k` on.
  using Factor = llvm::function_ref<Value(int64_t part, int64_t i, Value k)>;
  /// The sums of two registers of queries and two of others, over `end` numbers.
  Values multiply(Value end, llvm::ArrayRef<split::Product> products, Factor query, Factor other);

  int64_t queryParts;           ///< of a query and of a power; 0: nothing is rounded
  int64_t keyParts, valueParts; ///< of a number in the state
  int64_t keyLength, outGroups; ///< numbers of a converted key; 16s of numbers of a value
  int64_t queryStride;          ///< numbers from a part of a query to the next part
  Value queries;                ///< query of the block × part and number
  Value powers;                 ///< query of the tile × part and slot
  Value keys;                   ///< part and 16 slots × pair of numbers × 16 pairs
  Value values;                 ///< part and 16 numbers × pair of slots × 16 pairs
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_ROUNDEDATTENTION_H
