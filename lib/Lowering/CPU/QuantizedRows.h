// Where the rows of a quantised matrix are, and how they become float32.
#ifndef CTXC_LIB_LOWERING_CPU_QUANTIZEDROWS_H
#define CTXC_LIB_LOWERING_CPU_QUANTIZEDROWS_H

#include "lib/Lowering/CPU/BlockReader.h"
#include "lib/Lowering/CPU/ByteBlock.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/CPU/LoopBuilder.h"

namespace ctxc {

/// Emits at the insertion point of the builder that it is made with.
class QuantizedRows : LoopBuilder {
public:
  /// `address` is that of W; `scratch` (a memref of rows of `in` float32) begins at
  /// `scratchAddress`.
  QuantizedRows(mlir::OpBuilder &b, mlir::Location loc, const Contraction &c, Value address,
                Value scratchAddress, Value scratch)
      : LoopBuilder(b, loc), c(c), address(address), scratchAddress(scratchAddress),
        scratch(scratch) {}

  struct Row {
    Value elements; ///< the address of its first block
    Value scales;   ///< the address of its blocks' scales, where these lie apart
    Value memory;   ///< for the reader of one block; null where scales lie apart
  };
  /// Row `row` of W. Scales that lie apart are put into row `slot` of the scratch memory; what a
  /// block's reader keeps is at its beginning, for one slot behind another.
  Row open(Value row, int64_t slot);
  /// Whether all of `rows` can be read block by block (i1); null where that is known.
  Value areRead(llvm::ArrayRef<Row> rows);
  /// A reader of block number `block`.
  std::unique_ptr<BlockReader> block(const Row &row, Value block);
  /// Where span number `span` lies, of which `present` groups of 32 are there.
  ByteBlock::Place span(const Row &row, Value span, int64_t present);
  /// Asks for the lines that lie Contraction::aheadBytes behind `count` bytes of a row, from `byte`
  /// on. They may be those of later rows.
  void askAhead(const Row &row, Value byte, int64_t count);

  /// Decodes `count` rows, from `row` on, into the scratch memory from row `into` on.
  void decode(Value row, Value count, Value into);
  /// Decodes the blocks that have columns [from, to) of a row, to the same columns of the scratch
  /// memory's row `into`. `from` is where a block begins.
  void decodeColumns(Value row, Value from, Value to, Value into);

private:
  xf::QuantizedType format() const;
  void decodeBlocks(Value row, Value from, Value to, Value into);
  void decodeByCall(Value first, Value count, Value into);
  Value at(Value address, mlir::Type element, Value index);

  const Contraction &c;
  Value address, scratchAddress, scratch;
};

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_CPU_QUANTIZEDROWS_H
