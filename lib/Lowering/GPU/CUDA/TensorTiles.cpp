// y[s, m] (+)= Σ_k W[m, k] x[s, k] by mma.sync m16n8k16, bfloat16 times bfloat16 into float32.
//
// Exactness. A finite float32 x is the sum of three bfloat16 numbers. x0 is x with the lower 16
// bits set to zero: x cut off after the first 8 of its 24 significant bits. x − x0 is a multiple of
// x's last place and below 2^16 of them, so that float32 holds it exactly; x1 is that difference,
// cut off in the same way. x2 = x − x0 − x1 is below 2^8 last places, which bfloat16 holds. Only
// what is below 2^-133, the least positive bfloat16, is lost; nothing overflows, since no part is
// larger than x. (If x is infinite, the result is NaN.) A product of two bfloat16 numbers has 16
// significant bits and is exact in float32. The sum of three mma, of x2, x1 and x0, therefore has
// only the rounding errors of its additions. With γ = n u / (1 − n u) and n = 3 K + 1, the error is
// at most γ Σ_k |W[m, k] x[s, k]|; u is 2⁻²³, because tensor cores may truncate sums. With
// `rounded`, only the bfloat16 nearest to x is multiplied, in a single mma.
//
// Order. Sixteen k at a time, ascending, and for each of them x2, x1, x0. The order does not depend
// on where in a tile, or in a chunk of tokens, the sum is.
//
// A block of 8 warps takes a tile of y. Both operands go to shared memory as they are stored, by
// cp.async, in stages of 16 k, several stages ahead, so that the time that a load takes passes
// while earlier stages are multiplied; a stage has one barrier. Each warp splits the x that it
// multiplies on the way from shared memory to its registers. As float32, x takes 4 bytes where its
// parts would take 6, and no launch and no memory of its own; the instructions that split it run
// beside those of the tensor cores.
//
// A tile has up to 128 columns, fewer where the device would have too few tiles to be filled. Two
// such blocks run on a multiprocessor, and one multiplies while the other waits.
//
// An mma multiplies 16 k, four of which are in the same lane. Here these are four consecutive k, of
// x as of W, so that a lane loads 16 bytes of a row of x and 8 of a row of W at once: lane 4 g + t
// has k = 4 t to 4 t + 3 of rows g and g + 8 of x, and of row g of W. Rows of a stage lie one after
// the other, 64 bytes of x and 32 of W, so that a quarter of a warp reads two whole rows of x and
// half a warp four whole rows of W: each touches each of the 32 banks once, as do the writes.
#include "lib/Lowering/GPU/CUDA/TensorTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static constexpr int64_t threadsOfTensorTile = 256, warps = 8;
/// k in a stage; elements of W in 16 bytes, and in the word of a register; bytes of shared memory.
static constexpr int64_t stageDepth = 16, chunk = 8, perWord = 2, sharedBytes = 49152;
/// With fewer blocks than this, more of them with fewer columns are used.
static constexpr int64_t enoughBlocks = 96;

bool gpu_lowering::isForTensorCores(const Step &step, const TileLoops &loops) {
  const RowOp &op = step.ops.front();
  const Access &W = *op.accesses[loops.columnSide], &x = *op.accesses[loops.rowSide];
  auto elementOf = [](const Access &access) {
    return cast<MemRefType>(access.view.root.getType()).getElementType();
  };
  auto inPieces = [&](const Access &access, size_t vector) {
    auto all = elementsOf(access.view.root);
    auto isWhole = [](const Extent &e) { return e.isFixed() && e.fixed % chunk == 0; };
    return all && isWhole(*all) && isWhole(access.offset) && isWhole(access.steps[vector]) &&
           access.steps[loops.k] == fixedExtent(1);
  };
  return loops.batch.empty() && loops.rows.size() == 1 && op.loops[loops.column].isFixed() &&
         op.loops[loops.k].isFixed() && op.loops[loops.k].fixed % chunk == 0 &&
         elementOf(W).isBF16() && elementOf(x).isF32() && inPieces(W, loops.column) &&
         inPieces(x, loops.rows[0]) && x.view.root != op.accesses[2]->view.root;
}

namespace {

/// The tile of a block, and the part of it that a warp takes.
struct TensorTile {
  static constexpr int64_t warpRows = 32;
  int64_t rows, columns, warpColumns;

  TensorTile(int64_t allRows, int64_t allColumns)
      : rows(allRows > 64   ? 128
             : allRows > 32 ? 64
                            : 32),
        columns(128) {
    int64_t blocks = llvm::divideCeil(allRows, rows) * llvm::divideCeil(allColumns, columns);
    if (rows == 128 && blocks < enoughBlocks)
      columns = 64;
    warpColumns = rows * columns / warpRows / warps;
  }
};

class TensorTiles {
public:
  TensorTiles(KernelWriter &w, const Step &step, const TileLoops &loops, bool rounded)
      : w(w), given(step), op(step.ops.front()), loops(loops), rounded(rounded),
        rows(op.loops[loops.rows[0]].fixed), columns(op.loops[loops.column].fixed),
        depth(op.loops[loops.k].fixed), tile(rows, columns),
        stages(
            std::min<int64_t>(4, sharedBytes / (stageDepth * (4 * tile.rows + 2 * tile.columns)))),
        W(*op.accesses[loops.columnSide]), x(*op.accesses[loops.rowSide]) {
    sharedX = sharedMemory(stages * tile.rows * stageDepth, w.b.getF32Type());
    sharedW = sharedMemory(stages * tile.columns * stageDepth / perWord, w.b.getI32Type());
  }

  /// Writes the kernel's body, and returns the number of blocks.
  int64_t write() {
    int64_t rowTiles = llvm::divideCeil(rows, tile.rows);
    int64_t columnTiles = llvm::divideCeil(columns, tile.columns);
    SmallVector<Value> at = w.split(w.block, {fixedExtent(columnTiles), fixedExtent(rowTiles)});
    firstColumn = times(at[0], tile.columns);
    firstRow = times(at[1], tile.rows);
    placeThread();
    putAll(sumTile());
    // Registers and shared memory for two blocks on a multiprocessor.
    w.target.limitRegisters(w.function, 2);
    return rowTiles * columnTiles;
  }

private:
  // Numbers -------------------------------------------------------------------
  Value times(Value a, int64_t by) { return w.times(a, fixedExtent(by)); }
  Value plus(Value a, int64_t by) { return by ? w.add(a, w.index(by)) : a; }
  Value over(Value a, int64_t by) { return arith::DivUIOp::create(w.b, w.loc, a, w.index(by)); }
  Value mod(Value a, int64_t by) { return arith::RemUIOp::create(w.b, w.loc, a, w.index(by)); }
  Value least(Value a, int64_t b) { return arith::MinUIOp::create(w.b, w.loc, a, w.index(b)); }
  Value word(int64_t bits) { return arith::ConstantIntOp::create(w.b, w.loc, int32_t(bits), 32); }

  // Memory --------------------------------------------------------------------
  Value sharedMemory(int64_t size, Type element) {
    auto space = gpu::AddressSpaceAttr::get(w.b.getContext(), gpu::AddressSpace::Workgroup);
    Value memory = w.function.addWorkgroupAttribution(
        MemRefType::get({size}, element, MemRefLayoutAttrInterface(), space), w.loc);
    w.function.setWorkgroupAttributionAttr(
        w.function.getNumWorkgroupAttributions() - 1,
        StringAttr::get(w.b.getContext(), LLVM::LLVMDialect::getAlignAttrName()),
        w.b.getI64IntegerAttr(128));
    return memory;
  }

  /// A piece of 16 bytes that a thread copies in each stage.
  struct Copy {
    Value k, source, target; ///< k in the stage; where its row begins; where the piece goes
  };
  /// An operand, in elements of which 16 bytes hold `perPiece` and a k takes 1 / `perElement`.
  struct Operand {
    Value buffer, shared;
    int64_t height, perPiece, perElement;
    SmallVector<Copy> copies;
    int64_t pieces() const { return height * stageDepth / perElement / perPiece; }
    int64_t stageSize() const { return height * stageDepth / perElement; }
  };

  /// Computes the addresses of the operand's pieces, which depend only on the thread.
  void placeCopies(Operand &operand, const Access &access, size_t vector, Value first,
                   int64_t count) {
    int64_t perRow = stageDepth / operand.perElement / operand.perPiece;
    for (int64_t from = 0; from < operand.pieces(); from += threadsOfTensorTile) {
      Value flat = plus(w.thread, from);
      Value row = least(w.add(first, over(flat, perRow)), count - 1);
      operand.copies.push_back({times(mod(flat, perRow), operand.perPiece * operand.perElement),
                                plus(times(row, access.steps[vector].fixed / operand.perElement),
                                     access.offset.fixed / operand.perElement),
                                times(flat, operand.perPiece)});
    }
  }

  /// Computes the addresses that depend only on the thread.
  void placeThread() {
    operands[0] = {w.buffer(x.view.root), sharedX, tile.rows, 4, 1, {}};
    operands[1] = {w.buffer(W.view.root, w.b.getI32Type()), sharedW, tile.columns, 4, perWord, {}};
    placeCopies(operands[0], x, loops.rows[0], firstRow, rows);
    placeCopies(operands[1], W, loops.column, firstColumn, columns);
    warpRow = times(mod(w.subgroup, tile.rows / tile.warpRows), tile.warpRows);
    warpColumn = times(over(w.subgroup, tile.rows / tile.warpRows), tile.warpColumns);
    Value group = over(w.lane, 4), four = times(mod(w.lane, 4), 4);
    xPlace = w.add(times(w.add(warpRow, group), stageDepth), four);
    wPlace = w.add(times(w.add(warpColumn, group), stageDepth / perWord), over(four, perWord));
  }

  /// Starts the copies of stage `t` into its slots of shared memory.
  void copyStage(Value t) {
    Value k0 = times(t, stageDepth), slot = mod(t, stages);
    for (Operand &operand : operands) {
      Value start = times(slot, operand.stageSize());
      auto copyAll = [&] {
        for (Copy &copy : operand.copies)
          copyPiece(operand, copy, w.add(k0, copy.k), start);
      };
      if (operand.pieces() < threadsOfTensorTile)
        w.when(w.isBelow(w.thread, w.index(operand.pieces())), copyAll);
      else
        copyAll();
    }
  }

  void copyPiece(const Operand &operand, const Copy &copy, Value k, Value start) {
    Value count;
    if (depth % stageDepth) { // beyond the last k, zeros are written and nothing is read
      Value isThere = w.isBelow(k, w.index(depth));
      count = arith::SelectOp::create(w.b, w.loc, isThere, w.index(operand.perPiece), w.index(0));
      k = least(k, depth - operand.perPiece * operand.perElement);
    }
    nvgpu::DeviceAsyncCopyOp::create(w.b, w.loc, nvgpu::DeviceAsyncTokenType::get(w.b.getContext()),
                                     operand.shared, ValueRange{w.add(start, copy.target)},
                                     operand.buffer,
                                     ValueRange{w.add(copy.source, over(k, operand.perElement))},
                                     w.b.getIndexAttr(operand.perPiece), count, w.b.getUnitAttr());
  }
  void commit() { NVVM::CpAsyncCommitGroupOp::create(w.b, w.loc); }
  void wait(int64_t groups) { NVVM::CpAsyncWaitGroupOp::create(w.b, w.loc, groups); }

  /// Loads `count` elements of shared memory, which are aligned to their size.
  SmallVector<Value> load(Value shared, Value at, int64_t count) {
    auto type = VectorType::get({count}, cast<MemRefType>(shared.getType()).getElementType());
    Value all = vector::LoadOp::create(w.b, w.loc, type, shared, ValueRange{at},
                                       /*nontemporal=*/false, llvm::MaybeAlign(4 * count));
    SmallVector<Value> elements;
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(vector::ExtractOp::create(w.b, w.loc, all, i));
    return elements;
  }

  // Parts of x ----------------------------------------------------------------
  /// Returns the bfloat16 parts of two numbers, packed in one word, and subtracts them from the
  /// numbers.
  Value takeOff(Value &low, Value &high) {
    Value mask = word(0xffff0000);
    auto part = [&](Value &number) {
      Value bits = arith::BitcastOp::create(w.b, w.loc, w.b.getI32Type(), number);
      bits = arith::AndIOp::create(w.b, w.loc, bits, mask);
      Value first = arith::BitcastOp::create(w.b, w.loc, w.b.getF32Type(), bits);
      number = arith::SubFOp::create(w.b, w.loc, number, first);
      return bits;
    };
    Value lower = arith::ShRUIOp::create(w.b, w.loc, part(low), word(16));
    return arith::OrIOp::create(w.b, w.loc, part(high), lower);
  }
  Value nearest(Value low, Value high) {
    Value pair = vector::FromElementsOp::create(w.b, w.loc, VectorType::get({2}, w.b.getF32Type()),
                                                ValueRange{low, high});
    pair = arith::TruncFOp::create(w.b, w.loc, VectorType::get({2}, w.b.getBF16Type()), pair);
    Value one = vector::BitCastOp::create(w.b, w.loc, VectorType::get({1}, w.b.getI32Type()), pair);
    return vector::ExtractOp::create(w.b, w.loc, one, 0);
  }

  /// The parts of this lane's x in 16 rows from element `at` on, the largest part first: four words
  /// each.
  SmallVector<SmallVector<Value>> partsOf(Value at) {
    SmallVector<Value> above = load(sharedX, at, 4);
    SmallVector<Value> below = load(sharedX, plus(at, 8 * stageDepth), 4);
    SmallVector<SmallVector<Value>> parts;
    for (int64_t p = 0; p < (rounded ? 1 : 3); ++p) {
      parts.emplace_back();
      for (int64_t k : {0, 2})
        for (SmallVector<Value> *row : {&above, &below})
          parts.back().push_back(rounded ? nearest((*row)[k], (*row)[k + 1])
                                         : takeOff((*row)[k], (*row)[k + 1]));
    }
    return parts;
  }

  // Sums ----------------------------------------------------------------------
  void multiply(ArrayRef<Value> a, ArrayRef<Value> b, MutableArrayRef<Value> sums) {
    Type f32 = w.b.getF32Type();
    auto four = LLVM::LLVMStructType::getLiteral(w.b.getContext(), {f32, f32, f32, f32});
    std::array<NVVM::MMATypes, 2> types{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
    std::array<NVVM::MMALayout, 2> layouts{NVVM::MMALayout::row, NVVM::MMALayout::col};
    Value product =
        NVVM::MmaOp::create(w.b, w.loc, four, a, b, ValueRange(sums), ArrayRef<int64_t>{16, 8, 16},
                            std::nullopt, std::nullopt, types, layouts);
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = LLVM::ExtractValueOp::create(w.b, w.loc, product, int64_t(i));
  }

  /// Adds the stage in `slot`.
  void addStage(Value slot, SmallVectorImpl<Value> &sums) {
    Value startX = w.add(times(slot, operands[0].stageSize()), xPlace);
    Value startW = w.add(times(slot, operands[1].stageSize()), wPlace);
    SmallVector<SmallVector<Value>> weights;
    for (int64_t c = 0; c < tile.warpColumns; c += 8)
      weights.push_back(load(sharedW, plus(startW, c * stageDepth / perWord), 2));
    for (int64_t r = 0; r < tile.warpRows / 16; ++r) {
      SmallVector<SmallVector<Value>> parts = partsOf(plus(startX, r * 16 * stageDepth));
      for (const SmallVector<Value> &part : llvm::reverse(parts)) // the smallest first
        for (auto [c, weight] : llvm::enumerate(weights))
          multiply(part, weight,
                   MutableArrayRef<Value>(sums).slice((r * weights.size() + c) * 4, 4));
    }
  }

  SmallVector<Value> sumTile() {
    int64_t all = llvm::divideCeil(depth, stageDepth);
    SmallVector<Value> sums(tile.warpRows / 16 * tile.warpColumns / 8 * 4,
                            w.zeroOf(w.b.getF32Type()));
    for (int64_t t = 0; t < stages - 1; ++t) {
      if (t < all)
        copyStage(w.index(t));
      commit();
    }
    return w.loop(w.index(0), w.index(all), w.index(1), sums, [&](Value t, ValueRange before) {
      SmallVector<Value> sums(before);
      wait(stages - 2);
      w.barrier(); // stage t is there, and nobody reads the one before
      Value ahead = plus(t, stages - 1);
      w.when(w.isBelow(ahead, w.index(all)), [&] { copyStage(ahead); });
      commit();
      addStage(mod(t, stages), sums);
      return sums;
    });
  }

  void putAll(ArrayRef<Value> sums) {
    Value group = over(w.lane, 4), pair = times(mod(w.lane, 4), 2);
    Value row0 = w.add(w.add(firstRow, warpRow), group);
    Value column0 = w.add(w.add(firstColumn, warpColumn), pair);
    for (int64_t r = 0; r < tile.warpRows / 8; ++r) {
      Value row = plus(row0, 8 * r);
      w.when(w.isBelow(row, w.index(rows)), [&] {
        for (int64_t c = 0; c < tile.warpColumns / 4; ++c) { // pairs of columns, 8 apart
          Value column = plus(column0, c / 2 * 8 + c % 2);
          Value sum = sums[(r / 2 * tile.warpColumns / 8 + c / 2) * 4 + r % 2 * 2 + c % 2];
          w.when(w.isBelow(column, w.index(columns)), [&] { put(row, column, sum); });
        }
      });
    }
  }

  void put(Value row, Value column, Value sum) {
    SmallVector<Value> at(op.loops.size(), w.index(0));
    at[loops.rows[0]] = row;
    at[loops.column] = column;
    putSum(w, given, at, sum);
  }

  KernelWriter &w;
  const Step &given;
  const RowOp &op;
  const TileLoops &loops;
  const bool rounded;
  const int64_t rows, columns, depth;
  const TensorTile tile;
  const int64_t stages;
  const Access &W, &x;
  Value sharedX, sharedW, firstColumn, firstRow;
  Operand operands[2]; ///< x, W
  Value warpRow, warpColumn, xPlace, wPlace;
};

} // namespace

WrittenKernel gpu_lowering::writeTensorTiles(gpu::GPUModuleOp module, StringRef name,
                                             const Step &step, const TileLoops &loops, bool rounded,
                                             const GpuTarget &target) {
  KernelWriter w(module, name, step.ops.front().op->getLoc(), threadsOfTensorTile, target);
  int64_t blocks = TensorTiles(w, step, loops, rounded).write();
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
