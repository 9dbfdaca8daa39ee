// y[s, m] = Σ_k W[m, k] x[s, k] for one vector or a few (the full and the reduced run), bound by
// the bandwidth of reading W.
//
// A subgroup takes one row of W, or two where there are enough rows for the whole device. Its lanes
// read adjacent pieces of 16 bytes, several of which are in flight at once; each piece that is read
// serves all vectors. Lane l adds up pieces l, l + lanes, … in order; then the lanes are added up
// by halves. Of a quantised row, whole spans come first, whose pieces are SpanDecoder's. The order
// depends only on the target's subgroup size, neither on the number of vectors nor on the number of
// rows. With γ = n u / (1 − n u), u = 2⁻²⁴ and n = ⌈K / lanes⌉ + log2 lanes, the error of a sum is
// at most γ Σ_k |W[m, k] x[s, k]|.
#include "lib/Lowering/CPU/Remarks.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

/// From this number of results on, a subgroup takes two rows: the largest devices have room for
/// about this many subgroups at once, and each number of x that is read then serves both rows. With
/// two vectors and a row alone, reading x takes longer than reading W.
static constexpr int64_t manyResults = 8192;
/// The same of a quantised matrix: reading x from the multiprocessor's own cache takes longer than
/// reading the row from memory, and two rows need x once.
static constexpr int64_t manyQuantizedResults = 1024;
/// How many blocks with spans shall be on a multiprocessor at once. With registers for fewer, their
/// threads wait for memory.
static constexpr int64_t blocksTogether = 4;
/// How many pieces of a row a lane reads before it uses the first of them: of a single row that one
/// vector uses, and else, where the numbers of x take registers as well.
static constexpr int64_t aloneAhead = 8, piecesAhead = 4;
static constexpr int64_t threadsOfBlock = 128;
/// The number of blocks that every device can launch.
static constexpr int64_t mostBlocks = 65535;

namespace {

class ContractionWriter {
public:
  ContractionWriter(KernelWriter &w, const RowOp &row, bool accumulates)
      : w(w), W(*row.accesses[0]), x(*row.accesses[1]), y(*row.accesses[2]), selected(row.selected),
        accumulates(accumulates), slotsOfRow(selected ? row.loops[1].fixed : 1),
        slots(selected ? slotsOfRow * row.loops[0].fixed : 1),
        vectors(selected ? 1 : row.loops[0].fixed), out(row.loops[m()].fixed),
        in(row.loops[m() + 1].fixed), rows(rowsTogether()),
        element(cast<MemRefType>(W.view.root.getType()).getElementType()),
        piece(128 / element.getIntOrFloatBitWidth()), inPieces(canReadPieces()) {
    if (!inPieces)
      missed(row.op, "vectors",
             element.isF16()
                 ? "the matrix is stored in float16"
                 : "rows of the matrix, or the vectors, are no whole pieces of 16 bytes");
  }

  /// In how many parts the results are divided, each of which a block computes at once.
  int64_t parts() const { return llvm::divideCeil(slots * out, rowsOfPart()); }

  /// Writes the body of a kernel of this contraction alone, and returns the number of blocks.
  int64_t write() {
    if (parts() <= mostBlocks) {
      writePart(w.block);
      return parts();
    }
    w.loop(w.block, w.index(parts()), w.index(mostBlocks), [&](Value part) { writePart(part); });
    return mostBlocks;
  }

  void writePart(Value part) {
    int64_t all = slots * out;
    Value first = w.add(times(part, rowsOfPart()), times(w.subgroup, rows));
    SmallVector<Value> row; // beyond the last row, the last row again
    for (int64_t r = 0; r < rows; ++r) {
      Value at = r ? w.add(first, w.index(r)) : first;
      row.push_back(arith::MinUIOp::create(w.b, w.loc, at, w.index(all - 1)));
    }
    SmallVector<Value> stored = row;
    if (selected)
      stored[0] = enterSlot(row[0]);
    SmallVector<Value> sums = sumRows(stored);
    for (Value &sum : sums)
      sum = w.combineLanes(sum, [&](Value a, Value b) { return add(a, b); });
    w.when(equal(w.lane, 0), [&] {
      for (int64_t r = 0; r < rows; ++r)
        w.when(w.isBelow(r ? w.add(first, w.index(r)) : first, w.index(all)), [&] {
          for (int64_t s = 0; s < vectors; ++s)
            put(s, row[r], sums[r * vectors + s]);
        });
    });
  }

private:
  int64_t rowsTogether() const {
    auto matrix = quantizedOf(W.view.root);
    if (selected || out * vectors < (matrix ? manyQuantizedResults : manyResults))
      return 1;
    // Four rows have registers where their blocks have four bits of each number and a scale.
    bool isSmall = matrix && typeOf(matrix).getDeviceBlockBytes() <= 20;
    return isSmall && out >= manyResults ? 4 : 2;
  }
  int64_t rowsOfPart() const { return w.threads / w.lanes * rows; }
  int64_t m() const { return selected ? 2 : 1; } ///< index of the loop over rows of W
  bool canReadPieces() const {
    auto whole = [&](const Access &a, int64_t by) {
      return a.offset.isFixed() && a.offset.fixed % by == 0 && in % by == 0;
    };
    return !element.isF16() && whole(W, piece) && whole(x, 4) && x.steps[0].fixed % 4 == 0 &&
           (!selected || x.steps[1].fixed % 4 == 0) && elementsOf(x.view.root)->isFixed() &&
           elementsOf(x.view.root)->fixed % 4 == 0;
  }

  Value times(Value x, int64_t factor) { return w.times(x, fixedExtent(factor)); }
  Value add(Value a, Value b) { return arith::AddFOp::create(w.b, w.loc, a, b); }
  Value equal(Value a, int64_t b) {
    return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, a, w.index(b));
  }
  Value multiplyAdd(Value a, Value b, Value sum) {
    auto fast = arith::FastMathFlags::contract;
    return arith::AddFOp::create(w.b, w.loc, arith::MulFOp::create(w.b, w.loc, a, b, fast), sum,
                                 fast);
  }

  /// The row of the bank that belongs to `row`, which counts the rows of all slots one after the
  /// other. Sets `token` and `slot`.
  Value enterSlot(Value row) {
    Value size = w.index(out);
    slot = arith::DivUIOp::create(w.b, w.loc, row, size);
    SmallVector<Value> place =
        w.split(slot, {fixedExtent(slots / slotsOfRow), fixedExtent(slotsOfRow)});
    Value at = w.at(*selected, place);
    token = place[0], slot = place[1];
    Value expert =
        arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), w.load(selected->view.root, at));
    return w.add(times(expert, out), arith::RemUIOp::create(w.b, w.loc, row, size));
  }

  /// This lane's partial sums, for each row and each vector.
  SmallVector<Value> sumRows(ArrayRef<Value> row) {
    SmallVector<Value> sums(rows * vectors, w.zeroOf(w.b.getF32Type()));
    int64_t pieces = inPieces ? in / piece : in, spans = spansOfRow();
    if (spans) {
      w.target.limitRegisters(w.function, blocksTogether);
      sums = w.loop(w.index(0), w.index(spans), w.index(1), sums, [&](Value span, ValueRange s) {
        SmallVector<Value> next(s);
        addSpan(row, span, next);
        return next;
      });
    }
    int64_t ofRow = rows * vectors == 1 ? aloneAhead : piecesAhead;
    int64_t ahead = w.lanes * ofRow, begin = spans * SpanDecoder::pieces * w.lanes;
    int64_t together = begin + (pieces - begin) / ahead * ahead;
    SmallVector<Value> starts;
    for (Value r : row)
      starts.push_back(times(r, pieces));
    if (together > begin)
      sums = w.loop(w.add(w.lane, w.index(begin)), w.index(together), w.index(ahead), sums,
                    [&](Value at, ValueRange s) {
                      SmallVector<Value> next(s);
                      addPieces(starts, at, ofRow, next);
                      return next;
                    });
    int64_t whole = (pieces - together) / w.lanes;
    if (whole)
      addPieces(starts, w.add(w.lane, w.index(together)), whole, sums);
    int64_t done = together + whole * w.lanes;
    if (done == pieces)
      return sums;
    // The lanes that have one more piece.
    auto rest = scf::IfOp::create(w.b, w.loc, TypeRange(ValueRange(sums)),
                                  w.isBelow(w.lane, w.index(pieces - done)), true);
    OpBuilder::InsertionGuard guard(w.b);
    w.b.setInsertionPointToStart(rest.elseBlock());
    scf::YieldOp::create(w.b, w.loc, sums);
    w.b.setInsertionPointToStart(rest.thenBlock());
    addPieces(starts, w.add(w.lane, w.index(done)), 1, sums);
    scf::YieldOp::create(w.b, w.loc, sums);
    return SmallVector<Value>(rest.getResults());
  }

  /// How many spans of a quantised row are whole blocks and begin at words; 0 where a row has none.
  int64_t spansOfRow() const {
    auto matrix = inPieces ? quantizedOf(W.view.root) : nullptr;
    if (!matrix)
      return 0;
    xf::QuantizedType type = typeOf(matrix);
    int64_t numbers = SpanDecoder::numbersOfLane * w.lanes;
    if (numbers % type.getDeviceBlockElements() || w.lanes < 8)
      return 0;
    bool areWords = llvm::all_of(std::array{numbers, in, W.offset.fixed},
                                 [&](int64_t n) { return bytesOf(type, n) % 4 == 0; });
    return areWords ? in / numbers : 0;
  }
  /// Adds a span of quantised rows. All of it is read before the first number is used.
  void addSpan(ArrayRef<Value> row, Value span, SmallVectorImpl<Value> &sums) {
    auto matrix = quantizedOf(W.view.root);
    xf::QuantizedType type = typeOf(matrix);
    auto words = [&](int64_t numbers) { return bytesOf(type, numbers) / 4; };
    SmallVector<SpanDecoder> decoders;
    SmallVector<Value> read;
    for (Value r : row) {
      Value start = w.add(times(r, words(in)), w.index(words(W.offset.fixed)));
      start = w.add(start, times(span, words(SpanDecoder::numbersOfLane * w.lanes)));
      decoders.emplace_back(w, type, w.buffer(W.view.root), start);
    }
    for (int64_t p = 0; p < SpanDecoder::pieces; ++p)
      for (SpanDecoder &decoder : decoders)
        read.push_back(decoder.read(p));
    Value begin = times(span, SpanDecoder::numbersOfLane * w.lanes / 4);
    for (int64_t p = 0; p < SpanDecoder::pieces; ++p) {
      Value four = arith::DivUIOp::create(w.b, w.loc, decoders[0].first(p), w.index(4));
      SmallVector<SmallVector<Value>> weights;
      for (int64_t r = 0; r < rows; ++r)
        weights.push_back(decoders[r].numbers(p, read[p * rows + r]));
      for (int64_t s = 0; s < vectors; ++s) {
        SmallVector<Value> numbers = readVector(s, w.add(begin, four));
        for (int64_t r = 0; r < rows; ++r)
          for (auto [weight, number] : llvm::zip(weights[r], numbers))
            sums[r * vectors + s] = multiplyAdd(weight, number, sums[r * vectors + s]);
      }
    }
  }

  /// Adds `count` pieces from `at` on, `lanes` apart. All of them are read before the first is
  /// used.
  void addPieces(ArrayRef<Value> starts, Value at, int64_t count, SmallVectorImpl<Value> &sums) {
    SmallVector<SmallVector<Value>> read;
    SmallVector<Value> places;
    for (int64_t p = 0; p < count; ++p)
      places.push_back(p ? w.add(at, w.index(p * w.lanes)) : at);
    for (Value place : places)
      for (Value start : starts)
        read.push_back(readWeights(w.add(start, place)));
    for (int64_t p = 0; p < count; ++p)
      for (int64_t s = 0; s < vectors; ++s) {
        SmallVector<Value> numbers = readVector(s, places[p]);
        for (int64_t r = 0; r < rows; ++r)
          for (auto [weight, number] : llvm::zip(read[p * rows + r], numbers))
            sums[r * vectors + s] = multiplyAdd(weight, number, sums[r * vectors + s]);
      }
  }

  /// Reads and unpacks the weights of piece `at` of W. No arithmetic here waits for the loads.
  SmallVector<Value> readWeights(Value at) {
    Value root = W.view.root;
    if (inPieces && quantizedOf(root))
      return w.loadFour(root, w.add(at, w.index(W.offset.fixed / piece)));
    if (!inPieces) {
      Value weight = w.load(root, w.add(at, w.number(W.offset)));
      return {element.isF16() ? Value(arith::ExtFOp::create(w.b, w.loc, w.b.getF32Type(), weight))
                              : weight};
    }
    Type part = element.isF32() ? w.b.getF32Type() : Type(w.b.getI32Type());
    Value loaded = memref::LoadOp::create(w.b, w.loc, w.buffer(root, VectorType::get({4}, part)),
                                          ValueRange{w.add(at, w.index(W.offset.fixed / piece))});
    SmallVector<Value> weights;
    for (int64_t i = 0; i < 4; ++i) {
      Value word = vector::ExtractOp::create(w.b, w.loc, loaded, i);
      if (element.isF32()) {
        weights.push_back(word);
        continue;
      }
      Value high = arith::ConstantIntOp::create(w.b, w.loc, int32_t(0xffff0000), 32);
      weights.push_back(w.fromBfloat16(word));
      weights.push_back(arith::BitcastOp::create(w.b, w.loc, w.b.getF32Type(),
                                                 arith::AndIOp::create(w.b, w.loc, word, high)));
    }
    return weights;
  }

  /// The elements of vector s that are multiplied with piece `at` of a row.
  SmallVector<Value> readVector(int64_t s, Value at) {
    Extent start = x.offset + x.steps[0] * s;
    auto moved = [&](Value place, int64_t by) {
      if (token && getConstantIntValue(token) != 0)
        place = w.add(place, times(token, x.steps[0].fixed / by));
      if (slot && x.steps[1].fixed)
        place = w.add(place, times(slot, x.steps[1].fixed / by));
      return place;
    };
    if (!inPieces) {
      Value place = w.add(times(at, x.steps[m() + 1].fixed), w.number(start));
      return {w.load(x.view.root, moved(place, 1))};
    }
    Value buffer = w.buffer(x.view.root, VectorType::get({4}, w.b.getF32Type()));
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < piece / 4; ++i) {
      Value place = w.add(times(at, piece / 4), w.index(start.fixed / 4 + i));
      Value four = memref::LoadOp::create(w.b, w.loc, buffer, ValueRange{moved(place, 4)});
      for (int64_t j = 0; j < 4; ++j)
        numbers.push_back(vector::ExtractOp::create(w.b, w.loc, four, j));
    }
    return numbers;
  }

  void put(int64_t s, Value row, Value sum) {
    // The results of all slots lie one after the other, in the order in which their rows are
    // counted.
    Value at = w.add(times(row, y.steps[m()].fixed), w.number(y.offset + y.steps[0] * s));
    if (accumulates)
      sum = add(w.load(y.view.root, at), sum);
    w.store(sum, y.view.root, at);
  }

  KernelWriter &w;
  const Access &W, &x, &y;
  const std::optional<Access> &selected; ///< of experts, instead of several vectors
  Value token, slot;                     ///< only for experts
  bool accumulates;
  int64_t slotsOfRow, slots; ///< only for experts
  int64_t vectors, out, in, rows;
  Type element;
  int64_t piece; ///< elements in 16 bytes
  bool inPieces;
};

} // namespace

/// The kernel for experts that are stored as (in, out): each thread computes one element of a slot,
/// adding in order.
static int64_t writeColumns(KernelWriter &w, const RowOp &row) {
  const Access &W = *row.accesses[0], &x = *row.accesses[1], &y = *row.accesses[2];
  int64_t out = row.loops[2].fixed, in = row.loops[3].fixed;
  int64_t all = row.loops[0].fixed * row.loops[1].fixed * out;
  Value point = w.add(w.times(w.block, fixedExtent(w.threads)), w.thread);
  w.when(w.isBelow(point, w.index(all)), [&] {
    SmallVector<Value> at = w.split(point, {row.loops[0], row.loops[1], row.loops[2]});
    Value token = at[0], slot = at[1], m = at[2], zero = w.index(0);
    Value expert = arith::IndexCastOp::create(
        w.b, w.loc, w.b.getIndexType(),
        w.load(row.selected->view.root, w.at(*row.selected, {token, slot})));
    Value none = w.zeroOf(w.b.getF32Type());
    Value sum = w.loop(zero, w.index(in), w.index(1), none, [&](Value k, ValueRange sum) {
      Value weight = w.load(W.view.root, w.at(W, {zero, expert, m, k}));
      if (weight.getType().isF16())
        weight = arith::ExtFOp::create(w.b, w.loc, w.b.getF32Type(), weight);
      Value number = w.load(x.view.root, w.at(x, {token, slot, zero, k}));
      Value product = arith::MulFOp::create(w.b, w.loc, weight, number);
      return SmallVector<Value>{arith::AddFOp::create(w.b, w.loc, sum[0], product)};
    })[0];
    w.store(sum, y.view.root, w.at(y, {token, slot, m, zero}));
  });
  return (all + w.threads - 1) / w.threads;
}

/// Contractions of the same vectors, one after the other.
static int64_t writeSeveral(KernelWriter &w, const Step &step) {
  int64_t blocks = 0;
  for (const RowOp &row : step.ops) {
    ContractionWriter writer(w, row, step.accumulates);
    Value part = arith::SubIOp::create(w.b, w.loc, w.block, w.index(blocks));
    // Blocks before these ones are far above the limit, since indices are not negative.
    w.when(w.isBelow(part, w.index(writer.parts())), [&] { writer.writePart(part); });
    blocks += writer.parts();
  }
  return blocks;
}

WrittenKernel gpu_lowering::writeContraction(gpu::GPUModuleOp module, StringRef name,
                                             const Step &step, const GpuTarget &target) {
  KernelWriter w(module, name, step.ops.front().op->getLoc(), threadsOfBlock, target);
  const RowOp &row = step.ops.front();
  bool byColumns = row.selected && !(row.accesses[0]->steps[3] == fixedExtent(1));
  if (byColumns)
    missed(row.op, "contraction", "the experts' matrices are stored as (in, out)");
  int64_t blocks = byColumns              ? writeColumns(w, row)
                   : step.ops.size() == 1 ? ContractionWriter(w, row, step.accumulates).write()
                                          : writeSeveral(w, step);
  w.finish(blocks);
  return {w.function, w.roots, blocks, w.threads};
}
