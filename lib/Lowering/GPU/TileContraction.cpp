// The tile kernel for all devices: float32 multiply-adds, with W widened to float32.
//
// A block of 256 threads takes a tile of y of 16 R rows by 16 C columns. Thread (i, j) keeps rows
// i, i + 16, … and columns j, j + 16, … of it, R by C numbers, in registers. Both operands go, 16 k
// at a time, through two buffers of shared memory: while the block multiplies the contents of one
// buffer, its threads load those of the other. Blocks with the same columns are neighbours, so that
// these columns are read from the device's memory once. Where the number of columns grows with the
// visible tokens, a block takes every n-th tile of columns.
//
// Each sum adds its products one by one in ascending k, whatever the tile is and wherever in it the
// sum is. With γ = K u / (1 − K u), u = 2⁻²⁴, its error is at most γ Σ_k |W[m, k] x[s, k]| (Higham,
// lemma 3.1; if the device fuses multiplication and addition, each step rounds once; otherwise it
// rounds twice, and K becomes K + 1). The zeros that fill the last 16 k add +0 at the end, which
// changes no sum except −0.
#include "lib/Lowering/GPU/TileContraction.h"
#include "ctxc/Lowering/Kernel.h"
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/GPU/CUDA/TensorTiles.h"
#include "lib/Lowering/GPU/TileOperand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static constexpr int64_t threadsOfTile = 256;
/// Sixteen threads divide a tile's rows, and sixteen its columns.
static constexpr int64_t side = 16;
/// From this many tiles of 128 by 128 on, such large tiles are used: fewer of them leave large
/// devices without work.
static constexpr int64_t enoughTiles = 128;
/// Contractions with at most this k are short; they occur in small models.
static constexpr int64_t shortDepth = 512;
/// How many blocks share a result whose number of columns grows.
static constexpr int64_t enoughBlocks = 512;

std::optional<TileLoops> gpu_lowering::tileLoopsOf(const RowOp &op) {
  if (op.inputs != 2 || op.accesses.size() != 3 || op.selected || op.support ||
      !llvm::all_of(op.accesses, [](const auto &access) { return access.has_value(); }))
    return std::nullopt;
  auto has = [&](size_t operand, size_t loop) {
    return !(op.accesses[operand]->steps[loop] == Extent());
  };
  TileLoops loops;
  std::optional<size_t> k, column;
  for (size_t d = 0; d < op.loops.size(); ++d) {
    bool first = has(0, d), second = has(1, d), result = has(2, d);
    if (op.isReduction[d]) {
      if (k || !first || !second || result)
        return std::nullopt;
      k = d;
    } else if (!result || !(first || second)) {
      return std::nullopt;
    } else if (op.accesses[2]->steps[d] == fixedExtent(1) && first != second) {
      column = d; // the last of them, where several have a single element
    }
  }
  if (!k || !column)
    return std::nullopt;
  loops.k = *k;
  loops.column = *column;
  loops.columnSide = has(1, *column);
  loops.rowSide = 1 - loops.columnSide;
  for (size_t d = 0; d < op.loops.size(); ++d) {
    if (d == *k || d == *column)
      continue;
    if (!op.loops[d].isFixed() || !has(loops.rowSide, d))
      return std::nullopt;
    (has(loops.columnSide, d) ? loops.batch : loops.rows).push_back(d);
  }
  return loops;
}

void gpu_lowering::putSum(KernelWriter &w, const Step &step, ValueRange indices, Value sum) {
  const Access &y = *step.ops.front().accesses[2];
  Value place = w.at(y, indices);
  if (step.accumulates)
    sum = arith::AddFOp::create(w.b, w.loc, w.load(y.view.root, place), sum);
  w.store(sum, y.view.root, place);
}

namespace {

struct TileShape {
  int64_t rows, columns; ///< of each thread
};

class TileWriter {
public:
  TileWriter(KernelWriter &w, const Step &step, const TileLoops &loops, TileShape shape)
      : w(w), given(step), op(step.ops.front()), loops(loops), shape(shape),
        depth(op.loops[loops.k]), columns(op.loops[loops.column]),
        rowsOf(w, *op.accesses[loops.rowSide], op.loops, loops.rows, loops.k, side * shape.rows,
               op.accesses[2]->view.root),
        columnsOf(w, *op.accesses[loops.columnSide], op.loops, loops.column, loops.k,
                  side * shape.columns, op.accesses[2]->view.root) {
    for (size_t d : loops.rows)
      rows *= op.loops[d].fixed;
    placeThread();
  }

  /// Writes the kernel's body, and returns the number of blocks.
  int64_t write() {
    int64_t rowTiles = llvm::divideCeil(rows, side * shape.rows);
    SmallVector<Extent> sizes;
    int64_t blocks = rowTiles;
    for (size_t d : loops.batch) {
      sizes.push_back(op.loops[d]);
      blocks *= op.loops[d].fixed;
    }
    int64_t width = side * shape.columns;
    int64_t columnTiles = columns.isFixed() ? llvm::divideCeil(columns.fixed, width)
                                            : llvm::divideCeil(enoughBlocks, blocks);
    blocks *= columnTiles;
    sizes.append({fixedExtent(columnTiles), fixedExtent(rowTiles)});
    SmallVector<Value> at = w.split(w.block, sizes);
    indices.assign(op.loops.size(), w.index(0));
    for (auto [d, index] : llvm::zip(loops.batch, at))
      indices[d] = index;
    Value column = w.times(at[at.size() - 2], fixedExtent(width));
    Value row = w.times(at.back(), fixedExtent(side * shape.rows));
    if (columns.isFixed())
      writeTile(column, row);
    else
      w.loop(column, seen(columns, row), w.index(width * columnTiles), [&](Value next) {
        writeTile(next, row);
        w.barrier(); // nobody may still read the buffers when they are filled again
      });
    return blocks;
  }

private:
  /// A warp takes 8 columns by 4 rows, so that its reads of shared memory are of 128 and 64 bytes.
  /// Lanes that differ in bit 0 read the same columns, and those that differ in bit 1 the same
  /// rows: NVIDIA's devices deliver 16 bytes a lane to a whole warp at once only where one of the
  /// two is so.
  void placeThread() {
    auto bits = [&](int64_t from, int64_t count, int64_t to) {
      Value moved = arith::ShRUIOp::create(w.b, w.loc, w.thread, w.index(from));
      moved = arith::AndIOp::create(w.b, w.loc, moved, w.index((1 << count) - 1));
      return w.times(moved, fixedExtent(1 << to));
    };
    lane[0] = w.add(bits(1, 3, 0), bits(5, 1, 3));
    lane[1] = w.add(w.add(bits(0, 1, 0), bits(4, 1, 1)), bits(6, 2, 2));
  }

  /// How many of the visible slots the rows of the tile see at most. Where the rows are the last
  /// slots in order, these are the slots up to the last row's own. The scores of later slots are
  /// not read, and their weights are zero.
  Value seen(const Extent &visible, Value firstRow) {
    if (!kernel::isMarked<kernel::Causal>(op.op))
      return w.number(visible);
    int64_t calls = op.loops[loops.rows.front()].fixed;
    Value last = arith::MinUIOp::create(w.b, w.loc, w.add(firstRow, w.index(side * shape.rows - 1)),
                                        w.index(rows - 1));
    Value own = arith::DivUIOp::create(w.b, w.loc, last, w.index(rows / calls));
    return w.add(w.number(visible + fixedExtent(1 - calls)), own);
  }

  void writeTile(Value firstColumn, Value firstRow) {
    rowsOf.enter(firstRow, indices);
    columnsOf.enter(firstColumn, indices);
    putAll(sumTile(firstRow), firstColumn, firstRow);
  }

  Value multiplyAdd(Value a, Value b, Value sum) {
    auto fast = arith::FastMathFlags::contract;
    return arith::AddFOp::create(w.b, w.loc, arith::MulFOp::create(w.b, w.loc, a, b, fast), sum,
                                 fast);
  }

  /// The index at which the buffer for tile t of k starts.
  Value start(const TileOperand &operand, Value t) {
    Value odd = arith::AndIOp::create(w.b, w.loc, t, w.index(1));
    return w.times(odd, fixedExtent(operand.pieces()));
  }

  struct Loaded {
    SmallVector<Value> rows, columns;
  };
  Loaded load(Value t, bool partial) {
    return {rowsOf.load(t, partial), columnsOf.load(t, partial)};
  }
  void put(const Loaded &loaded, Value t) {
    rowsOf.put(loaded.rows, start(rowsOf, t));
    columnsOf.put(loaded.columns, start(columnsOf, t));
    w.barrier();
  }

  /// Loads tile t of k, and multiplies the tile before it.
  SmallVector<Value> step(Value t, bool partial, ValueRange sums) {
    Loaded next = load(t, partial);
    SmallVector<Value> added = multiply(before(t), sums);
    put(next, t);
    return added;
  }
  Value before(Value t) { return arith::SubIOp::create(w.b, w.loc, t, w.index(1)); }

  /// The sums over a k that grows with the visible tokens; `none` are the zero sums to start from.
  SmallVector<Value> sumGrowing(ValueRange none, Value firstRow) {
    Value end = seen(depth, firstRow), one = w.index(1);
    auto tilesOf = [&](Value k) -> Value {
      return arith::DivUIOp::create(w.b, w.loc, k, w.index(tileDepth));
    };
    auto atLeastOne = [&](Value tiles) -> Value {
      return arith::MaxUIOp::create(w.b, w.loc, tiles, one);
    };
    Value full = atLeastOne(tilesOf(end)),
          all = atLeastOne(tilesOf(w.add(end, w.index(tileDepth - 1))));
    put(load(w.index(0), true), w.index(0));
    // Loads of the last tile, of which some may be left out, are in branches of their own.
    SmallVector<Value> sums = w.loop(
        one, full, one, none, [&](Value t, ValueRange sums) { return step(t, false, sums); });
    sums =
        w.loop(full, all, one, sums, [&](Value t, ValueRange sums) { return step(t, true, sums); });
    return multiply(before(all), sums);
  }

  /// This thread's sums, row by row.
  SmallVector<Value> sumTile(Value firstRow) {
    SmallVector<Value> sums(shape.rows * shape.columns, w.zeroOf(w.b.getF32Type()));
    if (!depth.isFixed())
      return sumGrowing(sums, firstRow);
    int64_t full = depth.fixed / tileDepth, all = llvm::divideCeil(depth.fixed, tileDepth);
    put(load(w.index(0), full == 0), w.index(0));
    if (full > 1)
      sums = w.loop(w.index(1), w.index(full), w.index(1), sums,
                    [&](Value t, ValueRange sums) { return step(t, false, sums); });
    if (full && all > full)
      sums = step(w.index(full), true, sums);
    return multiply(w.index(all - 1), sums);
  }

  /// Multiplies tile t of k, and returns the sums with the products added.
  SmallVector<Value> multiply(Value t, ValueRange before) {
    SmallVector<Value> sums(before);
    Value startOfColumns = start(columnsOf, t), startOfRows = start(rowsOf, t);
    auto numbersOf = [&](Value piece) {
      SmallVector<Value> numbers;
      for (int64_t i = 0; i < 4; ++i)
        numbers.push_back(vector::ExtractOp::create(w.b, w.loc, piece, i));
      return numbers;
    };
    auto addPiece = [&](Value q) {
      SmallVector<SmallVector<Value>> a, x;
      for (int64_t i = 0; i < shape.columns; ++i)
        a.push_back(numbersOf(columnsOf.piece(lane[0], i, q, startOfColumns)));
      for (int64_t i = 0; i < shape.rows; ++i)
        x.push_back(numbersOf(rowsOf.piece(lane[1], i, q, startOfRows)));
      for (int64_t k = 0; k < 4; ++k)
        for (int64_t r = 0; r < shape.rows; ++r)
          for (int64_t c = 0; c < shape.columns; ++c) {
            Value &sum = sums[r * shape.columns + c];
            sum = multiplyAdd(a[c][k], x[r][k], sum);
          }
    };
    if (isShort)
      return w.loop(w.index(0), w.index(tileDepth / 4), w.index(1), sums,
                    [&](Value q, ValueRange carried) {
                      sums.assign(carried.begin(), carried.end());
                      addPiece(q);
                      return sums;
                    });
    for (int64_t q = 0; q < tileDepth / 4; ++q)
      addPiece(w.index(q));
    return sums;
  }

  void putAll(ArrayRef<Value> sums, Value firstColumn, Value firstRow) {
    SmallVector<Extent> sizes;
    for (size_t d : loops.rows)
      sizes.push_back(op.loops[d]);
    auto number = [&](Value first, Value own, int64_t i) {
      return w.add(w.add(first, own), w.index(side * i));
    };
    for (int64_t r = 0; r < shape.rows; ++r) {
      Value row = number(firstRow, lane[1], r);
      w.when(w.isBelow(row, w.index(rows)), [&] {
        SmallVector<Value> at = indices;
        for (auto [d, index] : llvm::zip(loops.rows, w.split(row, sizes)))
          at[d] = index;
        for (int64_t c = 0; c < shape.columns; ++c) {
          Value column = at[loops.column] = number(firstColumn, lane[0], c);
          w.when(w.isBelow(column, w.number(columns)),
                 [&] { putSum(w, given, at, sums[r * shape.columns + c]); });
        }
      });
    }
  }

  KernelWriter &w;
  const Step &given;
  const RowOp &op;
  const TileLoops &loops;
  TileShape shape;
  Extent depth, columns;
  /// Whether the contraction has no long loop over k in which speed matters. Then it loads fewer
  /// numbers at a time, which leaves registers for the code around it.
  bool isShort = depth.isFixed() && columns.isFixed() && depth.fixed < shortDepth;
  int64_t rows = 1;
  TileOperand rowsOf, columnsOf;
  Value lane[2];
  SmallVector<Value> indices;
};

} // namespace

/// Chooses no larger tile than the rows fill. Where there is work for many tiles and enough shared
/// memory, tiles are large.
static TileShape shapeOf(int64_t rows, const Extent &columns, int64_t batch,
                         const GpuTarget &target) {
  auto enough = [&](int64_t height) {
    return !columns.isFixed() ||
           batch * llvm::divideCeil(rows, height) * llvm::divideCeil(columns.fixed, 128) >=
               enoughTiles;
  };
  if (target.sharedBytes() >= 32768 && rows > 64 && (!columns.isFixed() || columns.fixed > 64) &&
      enough(64))
    return {enough(128) ? 8 : 4, 8};
  return {rows <= side ? 1 : rows <= 2 * side ? 2 : 4, 4};
}

WrittenKernel gpu_lowering::writeTiles(gpu::GPUModuleOp module, StringRef name, const Step &step,
                                       const GpuTarget &target) {
  const RowOp &op = step.ops.front();
  TileLoops loops = *tileLoopsOf(op);
  auto W = cast<MemRefType>(op.accesses[loops.columnSide]->view.root.getType());
  if (target.multipliesBfloat16() && isForTensorCores(step, loops)) {
    auto kernel = op.op->getParentOfType<func::FuncOp>();
    return writeTensorTiles(module, name, step, loops,
                            kernel && kernel::isMarked<kernel::Rounded>(kernel), target);
  }
  if (target.multipliesBfloat16() && W.getElementType().isBF16())
    missed(
        op.op, "tensor-cores",
        "the matrix is stored as (in, out), or its rows or the vectors are no whole pieces of 16 "
        "bytes");
  int64_t rows = 1, batch = 1;
  for (size_t d : loops.rows)
    rows *= op.loops[d].fixed;
  for (size_t d : loops.batch)
    batch *= op.loops[d].fixed;
  KernelWriter w(module, name, op.op->getLoc(), threadsOfTile, target);
  int64_t blocks =
      TileWriter(w, step, loops, shapeOf(rows, op.loops[loops.column], batch, target)).write();
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
