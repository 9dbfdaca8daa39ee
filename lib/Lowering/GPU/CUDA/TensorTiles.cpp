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
// A block of 8 warps takes 128 columns and 128, 64 or 32 rows of y. W goes to shared memory by
// cp.async, in stages of 32 k, some stages ahead. x is split into its parts by the block that uses
// it, on the way from registers to one of two buffers of 16 k, while the tensor cores work on the
// other buffer. Splitting x beforehand, in a kernel of its own, would be slower: as float32, x
// takes 4 bytes of the device's memory traffic, its parts would take 6; and it would need another
// launch and more memory. The instructions that split x fit in while others wait for the tensor
// cores.
//
// The rows of a tile lie in shared memory in pieces of 16 bytes (`chunk`). Piece c of row r is
// stored in place c xor (r / 2 mod 4) where a row has four pieces, and c xor (r / 4 mod 2) where it
// has two. With this swizzle the eight rows of an ldmatrix matrix, and the eight pieces that a
// quarter of a warp writes, touch each of the 32 banks once.
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

static constexpr int64_t threadsOfTensorTile = 256, warps = 8, tileColumns = 128;
/// k in a stage of W and in a buffer of x; elements of a 16-byte piece; rows of y that a warp
/// takes.
static constexpr int64_t stageDepth = 32, halfDepth = 16, chunk = 8, warpRows = 32;

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

class TensorTiles {
public:
  TensorTiles(KernelWriter &w, const Step &step, const TileLoops &loops, bool rounded)
      : w(w), given(step), op(step.ops.front()), loops(loops), rounded(rounded),
        rows(op.loops[loops.rows[0]].fixed), columns(op.loops[loops.column].fixed),
        depth(op.loops[loops.k].fixed), tileRows(rows > 64   ? 128
                                                 : rows > 32 ? 64
                                                             : 32),
        planes(rounded ? 1 : 3), stages(rounded ? 4 : 3),
        warpColumns(tileColumns * tileRows / warpRows / warps), W(*op.accesses[loops.columnSide]),
        x(*op.accesses[loops.rowSide]), xStart(stages * tileColumns * stageDepth) {
    auto space = gpu::AddressSpaceAttr::get(w.b.getContext(), gpu::AddressSpace::Workgroup);
    int64_t size = xStart + 2 * planes * tileRows * halfDepth;
    shared = w.function.addWorkgroupAttribution(
        MemRefType::get({size}, w.b.getI16Type(), MemRefLayoutAttrInterface(), space), w.loc);
    w.function.setWorkgroupAttributionAttr(
        w.function.getNumWorkgroupAttributions() - 1,
        StringAttr::get(w.b.getContext(), LLVM::LLVMDialect::getAlignAttrName()),
        w.b.getI64IntegerAttr(128));
  }

  /// Writes the kernel's body, and returns the number of blocks.
  int64_t write() {
    int64_t rowTiles = llvm::divideCeil(rows, tileRows);
    int64_t columnTiles = llvm::divideCeil(columns, tileColumns);
    SmallVector<Value> at = w.split(w.block, {fixedExtent(columnTiles), fixedExtent(rowTiles)});
    firstColumn = times(at[0], tileColumns);
    firstRow = times(at[1], tileRows);
    placeThread();
    putAll(sumTile());
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
  /// The element at which piece `c` of row `row` starts, in rows of `chunks` pieces.
  Value place(Value row, Value c, int64_t chunks) {
    Value turn = mod(over(row, 8 / chunks), chunks);
    Value at = arith::XOrIOp::create(w.b, w.loc, c, turn);
    return times(w.add(times(row, chunks), at), chunk);
  }

  /// Computes the addresses that depend only on the thread.
  void placeThread() {
    for (int64_t i = 0; i < tileColumns * stageDepth / chunk / threadsOfTensorTile; ++i) {
      Value flat = plus(w.thread, i * threadsOfTensorTile);
      Value row = over(flat, stageDepth / chunk), c = mod(flat, stageDepth / chunk);
      Value column = least(w.add(firstColumn, row), columns - 1);
      copies.push_back({times(c, chunk),
                        w.add(times(column, W.steps[loops.column].fixed), w.index(W.offset.fixed)),
                        place(row, c, stageDepth / chunk)});
    }
    Value row = over(w.thread, halfDepth / chunk), c = mod(w.thread, halfDepth / chunk);
    Value last = least(w.add(firstRow, row), rows - 1);
    ownK = times(c, chunk);
    ownX = w.add(times(last, x.steps[loops.rows[0]].fixed / 4), w.index(x.offset.fixed / 4));
    ownPlace = place(row, c, halfDepth / chunk);
    Value rowWarp = mod(w.subgroup, tileRows / warpRows);
    Value columnWarp = over(w.subgroup, tileRows / warpRows);
    warpRow = times(rowWarp, warpRows);
    warpColumn = times(columnWarp, warpColumns);
    // The row and piece that each lane passes to ldmatrix: 16 rows by two pieces of x, and for W
    // twice 8 rows by two pieces.
    Value xRow = w.add(warpRow, mod(w.lane, 16));
    xPlace = place(xRow, over(w.lane, 16), halfDepth / chunk);
    Value eight = mod(w.lane, 8), second = times(over(w.lane, 16), 8);
    Value wRow = w.add(warpColumn, w.add(eight, second));
    for (int64_t half : {0, 1})
      wPlace[half] = place(wRow, plus(mod(over(w.lane, 8), 2), 2 * half), stageDepth / chunk);
  }

  // Memory --------------------------------------------------------------------
  /// Starts the copy of stage `t` of W into its slot of shared memory.
  void copyStage(Value t) {
    Value slot = times(mod(t, stages), tileColumns * stageDepth), k0 = times(t, stageDepth);
    for (auto &[k, source, target] : copies) {
      Value at = w.add(k0, k), count;
      if (depth % stageDepth) { // beyond the last k, zeros are written and nothing is read
        Value isThere = w.isBelow(at, w.index(depth));
        count = arith::SelectOp::create(w.b, w.loc, isThere, w.index(chunk), w.index(0));
        at = least(at, depth - chunk);
      }
      nvgpu::DeviceAsyncCopyOp::create(
          w.b, w.loc, nvgpu::DeviceAsyncTokenType::get(w.b.getContext()), shared,
          ValueRange{w.add(slot, target)}, w.buffer(W.view.root), ValueRange{w.add(source, at)},
          w.b.getIndexAttr(chunk), count, w.b.getUnitAttr());
    }
  }
  void commit() { NVVM::CpAsyncCommitGroupOp::create(w.b, w.loc); }
  void wait(int64_t groups) { NVVM::CpAsyncWaitGroupOp::create(w.b, w.loc, groups); }

  bool allBringX() const { return threadsOfTensorTile * chunk <= tileRows * halfDepth; }

  /// Loads this thread's eight numbers of x for buffer `half` of k; zeros beyond the last k.
  SmallVector<Value> loadX(Value half) {
    Value k = w.add(times(half, halfDepth), ownK);
    Value isThere = w.isBelow(k, w.index(depth));
    if (!allBringX())
      isThere =
          arith::AndIOp::create(w.b, w.loc, isThere, w.isBelow(w.thread, w.index(tileRows * 2)));
    auto four = VectorType::get({4}, w.b.getF32Type());
    auto branch = scf::IfOp::create(w.b, w.loc, TypeRange{four, four}, isThere, true);
    OpBuilder::InsertionGuard guard(w.b);
    w.b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> pieces;
    for (int64_t i : {0, 1})
      pieces.push_back(memref::LoadOp::create(w.b, w.loc, w.buffer(x.view.root, four),
                                              ValueRange{plus(w.add(ownX, over(k, 4)), i)}));
    scf::YieldOp::create(w.b, w.loc, pieces);
    w.b.setInsertionPointToStart(branch.elseBlock());
    Value zero = w.zeroOf(four);
    scf::YieldOp::create(w.b, w.loc, ValueRange{zero, zero});
    return SmallVector<Value>(branch.getResults());
  }

  /// Splits the numbers into their three parts, and stores the parts into buffer 0 or 1.
  void putX(ArrayRef<Value> pieces, int64_t buffer) {
    SmallVector<Value> numbers;
    for (Value piece : pieces)
      for (int64_t i = 0; i < 4; ++i)
        numbers.push_back(vector::ExtractOp::create(w.b, w.loc, piece, i));
    auto put = [&] {
      for (int64_t p = 0; p < planes; ++p) {
        SmallVector<Value> words;
        for (int64_t i = 0; i < chunk; i += 2)
          words.push_back(rounded ? nearest(numbers[i], numbers[i + 1])
                                  : takeOff(numbers[i], numbers[i + 1]));
        auto eight = VectorType::get({chunk}, w.b.getI16Type());
        Value all = vector::FromElementsOp::create(
            w.b, w.loc, VectorType::get({chunk / 2}, w.b.getI32Type()), words);
        vector::StoreOp::create(w.b, w.loc, vector::BitCastOp::create(w.b, w.loc, eight, all),
                                shared, ValueRange{plus(ownPlace, planeStart(buffer, p))},
                                /*nontemporal=*/false, llvm::MaybeAlign(16));
      }
    };
    allBringX() ? put() : w.when(w.isBelow(w.thread, w.index(tileRows * 2)), put);
  }

  int64_t planeStart(int64_t buffer, int64_t plane) const {
    return xStart + (buffer * planes + plane) * tileRows * halfDepth;
  }

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
    return onlyWord(pair);
  }
  Value onlyWord(Value pair) {
    Value one = vector::BitCastOp::create(w.b, w.loc, VectorType::get({1}, w.b.getI32Type()), pair);
    return vector::ExtractOp::create(w.b, w.loc, one, 0);
  }

  // Sums ----------------------------------------------------------------------
  /// Loads four matrices of 8 by 8 elements; each lane gets one word of each matrix.
  SmallVector<Value> matrices(Value at) {
    auto type = VectorType::get({4, 2}, w.b.getI16Type());
    Value all = nvgpu::LdMatrixOp::create(w.b, w.loc, type, shared, ValueRange{at},
                                          /*transpose=*/false, /*numTiles=*/4);
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(onlyWord(vector::ExtractOp::create(w.b, w.loc, all, i)));
    return words;
  }

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

  /// Adds half of a stage, whose W lies in `slot` and whose x lies in buffer `half`.
  void addHalf(Value slot, int64_t half, SmallVectorImpl<Value> &sums) {
    SmallVector<SmallVector<Value>> weights;
    for (int64_t c = 0; c < warpColumns; c += 16)
      weights.push_back(matrices(w.add(slot, plus(wPlace[half], c * stageDepth))));
    for (int64_t p = planes - 1; p >= 0; --p)
      for (int64_t r = 0; r < warpRows / 16; ++r) {
        SmallVector<Value> a = matrices(plus(xPlace, planeStart(half, p) + r * 16 * halfDepth));
        for (int64_t c = 0; c < warpColumns / 8; ++c)
          multiply(a, ArrayRef(weights[c / 2]).slice(c % 2 * 2, 2),
                   MutableArrayRef<Value>(sums).slice((r * warpColumns / 8 + c) * 4, 4));
      }
  }

  SmallVector<Value> sumTile() {
    int64_t all = llvm::divideCeil(depth, stageDepth);
    SmallVector<Value> sums(warpRows / 16 * warpColumns / 8 * 4, w.zeroOf(w.b.getF32Type()));
    for (int64_t t = 0; t < stages - 1; ++t) {
      if (t < all)
        copyStage(w.index(t));
      commit();
    }
    putX(loadX(w.index(0)), 0);
    wait(stages - 2);
    w.barrier();
    return w.loop(w.index(0), w.index(all), w.index(1), sums, [&](Value t, ValueRange before) {
      SmallVector<Value> sums(before);
      Value slot = times(mod(t, stages), tileColumns * stageDepth);
      for (int64_t half : {0, 1}) {
        SmallVector<Value> next = loadX(plus(times(t, 2), half + 1));
        if (half == 0) { // into the slot that the step before has read
          Value ahead = plus(t, stages - 1);
          w.when(w.isBelow(ahead, w.index(all)), [&] { copyStage(ahead); });
          commit();
        }
        addHalf(slot, half, sums);
        putX(next, 1 - half);
        if (half == 1)
          wait(stages - 2);
        w.barrier();
      }
      return sums;
    });
  }

  void putAll(ArrayRef<Value> sums) {
    Value group = over(w.lane, 4), pair = times(mod(w.lane, 4), 2);
    Value row0 = w.add(w.add(firstRow, warpRow), group);
    Value column0 = w.add(w.add(firstColumn, warpColumn), pair);
    for (int64_t r = 0; r < warpRows / 8; ++r) {
      Value row = plus(row0, 8 * r);
      w.when(w.isBelow(row, w.index(rows)), [&] {
        for (int64_t c = 0; c < warpColumns / 4; ++c) { // pairs of columns, 8 apart
          Value column = plus(column0, c / 2 * 8 + c % 2);
          Value sum = sums[(r / 2 * warpColumns / 8 + c / 2) * 4 + r % 2 * 2 + c % 2];
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
  const int64_t rows, columns, depth, tileRows, planes, stages, warpColumns;
  const Access &W, &x;
  const int64_t xStart; ///< in shared memory, behind the stages of W
  Value shared, firstColumn, firstRow;
  struct Copy {
    Value k, source, target;
  };
  SmallVector<Copy> copies;
  Value ownK, ownX, ownPlace; ///< which part of x the thread loads
  Value warpRow, warpColumn, xPlace, wPlace[2];
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
