// Attention of some queries over a tile of slots, in vector code.
//
// The softmax runs along: each tile of slotsOfTile slots gives the largest score, the sum of the
// powers, and the mixed values, as if there were no other slots; merging two such results scales
// both to the larger of their largest scores. Tiles begin at multiples of slotsOfTile and are
// merged in order, and a tile without a slot that a query sees changes nothing. So a query's result
// depends neither on the number of threads nor on how a prompt is divided, and memory for scores is
// needed for one tile alone. (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018; Dao et al., "FlashAttention", 2022.)
#ifndef CTXC_LIB_LOWERING_CPU_ATTENTIONTILE_H
#define CTXC_LIB_LOWERING_CPU_ATTENTIONTILE_H

#include "ctxc/Lowering/AttentionTiles.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CPU/VectorSums.h"

namespace ctxc {

/// The heads of some rows: of rows [row, row + rows), of groups [group, group + groups), heads
/// [head, head + heads) of each group. They are numbered with the head as the fastest index, then
/// the row, then the group.
struct Queries {
  mlir::Value row, rows, group, groups, head, heads;
  /// How many there are in each group, where it is known; otherwise 0. A single row is known.
  int64_t known = 0;
};

/// The results of a tile, one for each query, from index `first` on: the largest score (f32, n),
/// the sum of exp(score − largest) (f32, n), and the sum of these powers times the values (f32,
/// n × x).
struct TileResults {
  mlir::Value largest, total, mixed, first;
};

/// Emits the code for one kernel.attention on memory.
class AttentionTile : protected LoopBuilder {
protected:
  /// `op` names the operands. `operands` are the same ones in the function that is being written.
  AttentionTile(const mlir::OpBuilder &b, kernel::AttentionOp op, const CpuTarget &target);

  struct Operands {
    Value query, keys, values, window, sinks, ownScores, ownValues, mixed;
    mlir::SmallVector<Value> others;
  };

  /// Copies of one group's keys and values for the slots of a tile, in float32. Where one is null,
  /// keys or values are read where they are.
  struct Copies {
    Value keys;   ///< slotsOfTile / rowLanes × width × rowLanes
    Value values; ///< slotsOfTile × copyStride()
    Value from;   ///< the first slot
  };
  /// Whether there are registers for products from a copy of the keys.
  bool copiesKeys() const { return sums == 16; }
  /// Of whole cache lines, and an odd number of them: rows that are a power of two apart, as in a
  /// KV cache, compete for the same few sets of the first-level cache.
  int64_t copyStride() const { return (llvm::divideCeil(out, rowLanes) | 1) * rowLanes; }
  /// Copy the keys or values of slots [from, to).
  void copyKeys(Value group, Value to, const Copies &copies);
  void copyValues(Value group, Value to, const Copies &copies);

  /// Computes the results of `queries` for slots [from, to), at most slotsOfTile. `scores` is
  /// memory for one tile of scores for each query; `part` is how many slots are taken before the
  /// next group.
  void computeTile(const Queries &queries, Value from, Value to, Value scores,
                   const TileResults &results, int64_t part, const Copies &copies = {});

  /// The steps of computeTile; products are in AttentionKeys.cpp. Products and mixed values of
  /// slots [from, to) are those of a part of the tile that begins at slot `first`.
  void writeProducts(const Queries &queries, Value first, Value from, Value to, Value scores);
  /// The same for all slots before `to`, of queries of one group.
  void writeProductsOfCopy(const Queries &queries, Value to, Value scores, const Copies &copies);
  /// Replaces products by scores and then by powers, and writes the largest scores and the sums.
  void writePowers(const Queries &queries, Value from, Value to, Value scores,
                   const TileResults &results);
  void startMixed(const Queries &queries, const TileResults &results);
  void addMixed(const Queries &queries, Value first, Value from, Value to, Value scores,
                const TileResults &results, const Copies &copies = {});
  /// A query: its index among some, and where it is.
  struct Place {
    Value group, query, row, head;
  };
  /// Replaces the products of a query, 16 from slot `from` + `t` on or those that the mask has, by
  /// scores, and returns these, −∞ where the mask has none.
  Value takeScores(const Place &place, Value from, Value t, Value mask, Value scores);
  /// Replaces scores by powers, and returns these, 0 where the mask has none.
  Value takePowers(Value query, Value t, Value mask, Value largest, Value scores);
  Value number(double x);
  /// `x`, or 0 where it is −∞: no slot was seen, and every power is exp(−∞).
  Value finite(Value x);
  /// For a single row: whether there are sums for all numbers of a value at once.
  bool takesValuesAtOnce() const;
  /// For a single row: whether keys and values are asked for ahead.
  bool asksAhead() const;
  /// How many slots are multiplied at once.
  int64_t slotsAtOnce(int64_t known) const;
  /// Memory on the stack of the function that is being written.
  Value scratch(mlir::ArrayRef<int64_t> shape, mlir::Type element);

  /// Calls body(group, index of the query, row, head) for each query.
  void forEach(const Queries &queries, llvm::function_ref<void(Value, Value, Value, Value)> body);

  /// The result of all slots so far, for one query: `largest` and `total` at index `at`, and the
  /// mixed values in the destination.
  struct Running {
    Value largest, total, at, row, group, head;
  };
  void start(const Running &running);
  void merge(const Running &running, const TileResults &tile, Value query);
  /// Adds the row's own value and the sinks, and divides by the sum.
  void finish(const Running &running);

  kernel::AttentionOp op;
  Operands in;
  int64_t groups, repeat, width, out;
  bool isInLine;   ///< the keys of a group lie one after the other, and so do its values
  bool asksInLine; ///< CpuTarget::asksInLine

private:
  using At = llvm::SmallVector<std::pair<Value, Value>>; ///< row and head
  /// The row and head of the queries i, i + 1, … of a group.
  At places(const Queries &queries, Value i, int64_t count);
  void forGroups(const Queries &queries, llvm::function_ref<void(Value, Value)> body);
  void forSome(const Queries &queries, int64_t step, llvm::function_ref<void(Value, int64_t)> body);
  int64_t queriesAtOnce(int64_t known) const;
  void writeProduct(const Queries &queries, Value group, Value query, int64_t count, Value slot,
                    int64_t slots, Value scores, Value firstQuery, Value firstSlot);
  /// Of each slot of [from, from + slots) and each of the queries at `at`, the vector whose lanes
  /// are to be added; `asks`: for keys ahead.
  Values products(Value group, const At &at, Value from, int64_t slots, bool asks);
  Value scoreOf(Value product, Value group, Value row, Value head, Value slot, Value mask);
  void addValues(const Queries &queries, Value group, int64_t count, Value firstQuery, Value from,
                 Value to, Value first, int64_t vectors, Value mask, Value scores, Value firstSlot,
                 const TileResults &results, const Copies &copies);
  /// For a single row: how many slots ahead keys or values are asked for.
  int64_t slotsAhead(Value state) const;
  void forVectors(int64_t atOnce, llvm::function_ref<void(Value, int64_t, Value)> body);
  /// A vector of keys or values, widened to float32.
  Value loadState(Value memref, mlir::ValueRange at, Value mask);
  Value power(Value x, Value largest);

  int64_t sums; ///< sums that are kept in registers at once
  mlir::VectorType lanes;
  int64_t bytesAhead; ///< CpuTarget::bytesAhead
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_ATTENTIONTILE_H
