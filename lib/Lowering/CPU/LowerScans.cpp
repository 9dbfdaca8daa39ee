// A recurrence becomes calls of the caller's parallel-for. A unit of work is some of its parts; it
// goes through all rows in order, with what it carries in place in the memory of `after`. Each row
// of a unit is a call of a function that is not inlined: what LLVM makes of its loops then does not
// depend on the number of rows.
#include "ctxc/Lowering/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CPU/LoopBuilder.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Order.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_LOWERSCANS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

/// A unit has so many parts that it carries at least this many numbers.
constexpr int64_t numbersOfScanUnit = 1024;
/// With fewer numbers in all rows together, a second thread costs more time than it saves.
constexpr int64_t sharedScanNumbers = 1 << 14;

class ScanLowering : LoopBuilder {
public:
  ScanLowering(kernel::ScanOp op, int64_t number)
      : LoopBuilder(OpBuilder(op), op.getLoc()), op(op),
        kernel(op->getParentOfType<func::FuncOp>()),
        name((kernel.getName() + "_scan_" + Twine(number)).str()), parts(op.getParts()) {
    auto carried = cast<MemRefType>(op.getBefore().getType());
    numbers = carried.getNumElements() / parts;
    unitParts = std::min<int64_t>(parts, llvm::divideCeil(numbersOfScanUnit, numbers));
    isolated = !op.getAfter();
  }

  /// Fails where the region uses a value from outside that is no constant.
  LogicalResult lower();

private:
  /// A function of the frame and two numbers, at whose start the builder is then.
  struct Function {
    func::FuncOp function;
    Value frame, first, second;
  };
  Function beginFunction(StringRef suffix);
  func::FuncOp writeRow();
  func::FuncOp writeUnits(func::FuncOp row);
  /// The parts of a unit: from the first on, and the first behind them.
  std::pair<Value, Value> partsOf(Value unit) {
    Value first = times(unit, unitParts), end = add(first, index(unitParts));
    return {first, parts % unitParts ? least(end, index(parts)) : end};
  }
  /// What is left of `memref` at these first indices.
  Value restOf(Value memref, ArrayRef<Value> at, MemRefType type);
  void copyBefore(Value first, Value end);

  kernel::ScanOp op;
  func::FuncOp kernel;
  std::string name;
  llvm::SetVector<Value> constantsOutside;
  int64_t parts, numbers, unitParts;
  bool isolated;
  SmallVector<Value> given; ///< reads, before, after, results, in the kernel
  SmallVector<Value> in;    ///< the same in the function that is being written
  Value before() const { return in[in.size() - 3]; }
  Value after() const { return in[in.size() - 2]; }
  Value results() const { return in.back(); }
};

ScanLowering::Function ScanLowering::beginFunction(StringRef suffix) {
  func::FuncOp function = beginPart(b, loc, kernel, name + suffix);
  Value frame = function.getArgument(0);
  in = loadCrossing(b, loc, frame, given);
  return {function, frame, toIndex(b, loc, function.getArgument(1)),
          toIndex(b, loc, function.getArgument(2))};
}

Value ScanLowering::restOf(Value memref, ArrayRef<Value> at, MemRefType type) {
  auto whole = cast<MemRefType>(memref.getType());
  SmallVector<OpFoldResult> offsets(whole.getRank(), b.getIndexAttr(0)),
      sizes(whole.getRank(), b.getIndexAttr(1)), strides(whole.getRank(), b.getIndexAttr(1));
  for (auto [i, place] : llvm::enumerate(at))
    offsets[i] = place;
  for (int64_t i = at.size(); i < whole.getRank(); ++i)
    sizes[i] = b.getIndexAttr(whole.getDimSize(i));
  Value rest =
      memref::SubViewOp::create(b, loc,
                                cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
                                    type.getShape(), whole, offsets, sizes, strides)),
                                memref, offsets, sizes, strides);
  if (rest.getType() == type)
    return rest;
  if (memref::CastOp::areCastCompatible(rest.getType(), type))
    return memref::CastOp::create(b, loc, type, rest);
  // Axes of one entry, whose strides say nothing.
  auto found = memref::ExtractStridedMetadataOp::create(b, loc, rest);
  sizes.clear();
  strides.clear();
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), type.getStridesAndOffset().first)) {
    sizes.push_back(b.getIndexAttr(size));
    strides.push_back(b.getIndexAttr(stride));
  }
  return memref::ReinterpretCastOp::create(b, loc, type, found.getBaseBuffer(),
                                           OpFoldResult(found.getOffset()), sizes, strides);
}

/// The parts of a unit in one row: the region, for each of them.
func::FuncOp ScanLowering::writeRow() {
  auto [function, frameOf, row, unit] = beginFunction("_row");
  Block &body = op.getBody().front();
  auto [first, end] = partsOf(unit);
  Value s = row;
  IRMapping constants; // which other passes have moved out of the region
  for (Value outside : constantsOutside)
    constants.map(outside, b.clone(*outside.getDefiningOp())->getResult(0));
  forRange(first, end, 1, [&](Value part) {
    IRMapping inside = constants;
    auto bind = [&](unsigned i, Value memref, ArrayRef<Value> at) {
      BlockArgument argument = body.getArgument(i);
      inside.map(argument, restOf(memref, at, cast<MemRefType>(argument.getType())));
    };
    bind(0, after(), {part});
    for (auto [i, map] : llvm::enumerate(op.getMaps().getAsValueRange<AffineMapAttr>())) {
      SmallVector<Value> at;
      for (unsigned j = 0; j < map.getNumResults(); ++j)
        at.push_back(affine::makeComposedAffineApply(b, loc, map.getSubMap({j}),
                                                     {OpFoldResult(s), OpFoldResult(part)}));
      bind(i + 1, in[i], at);
    }
    bind(body.getNumArguments() - 1, results(), {s, part});
    for (Operation &each : body)
      b.clone(each, inside);
  });
  func::ReturnOp::create(b, loc);
  return function;
}

/// Brings what is carried to where it is changed, which may be the same memory.
void ScanLowering::copyBefore(Value first, Value end) {
  auto type = cast<MemRefType>(before().getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  offsets[0] = first;
  for (int64_t d : type.getShape())
    sizes.push_back(b.getIndexAttr(d));
  sizes[0] = sub(end, first);
  Value from = memref::SubViewOp::create(b, loc, before(), offsets, sizes, strides);
  Value to = memref::SubViewOp::create(b, loc, after(), offsets, sizes, strides);
  linalg::makeMemRefCopyOp(b, loc, from, to);
}

/// All rows of some units.
func::FuncOp ScanLowering::writeUnits(func::FuncOp row) {
  auto [function, frameOf, begin, end] = beginFunction("_units");
  Value address = frameOf;
  Value rows = memref::DimOp::create(b, loc, results(), 0);
  forRange(begin, end, 1, [&](Value unit) {
    auto [first, behind] = partsOf(unit);
    if (!isolated)
      copyBefore(first, behind);
    forRange(index(0), rows, 1, [&, first = first, behind = behind](Value s) {
      if (isolated)
        copyBefore(first, behind);
      func::CallOp::create(b, loc, row, ValueRange{address, toI64(b, loc, s), toI64(b, loc, unit)});
    });
  });
  func::ReturnOp::create(b, loc);
  return function;
}

LogicalResult ScanLowering::lower() {
  getUsedValuesDefinedAbove(op.getBody(), constantsOutside);
  for (Value outside : constantsOutside)
    if (!matchPattern(outside, m_Constant()))
      return op.emitError("its region uses a value from outside of it that is no constant; what it "
                          "reads are its operands");
  b.setInsertionPoint(op);
  given.assign(op.getReads().begin(), op.getReads().end());
  given.push_back(op.getBefore());
  // Rows that are sequences of their own change a copy of what each begins with.
  given.push_back(isolated ? memref::AllocOp::create(b, loc, op.getBefore().getType()).getResult()
                           : op.getAfter());
  given.push_back(op.getResults());
  Value frame = storeCrossing(b, loc, kernel, given);
  Value rows = memref::DimOp::create(b, loc, op.getResults(), 0);

  OpBuilder atOp = b;
  func::FuncOp row = writeRow(), units = writeUnits(row);
  b = atOp;
  Value zero = LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(0));
  Value count = toI64(b, loc, index(llvm::divideCeil(parts, unitParts)));
  auto branch =
      scf::IfOp::create(b, loc, isLess(index(sharedScanNumbers), times(rows, parts * numbers)),
                        /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  callParallelFor(b, loc, kernel, units, count, frame);
  b.setInsertionPointToStart(branch.elseBlock());
  func::CallOp::create(b, loc, units, ValueRange{frame, zero, count});
  op.erase();
  return success();
}

struct LowerScans : ctxc::impl::LowerScansBase<LowerScans> {
  void runOnOperation() override {
    if (failed(expectBuffers(getOperation(), getArgument())))
      return signalPassFailure();
    SmallVector<kernel::ScanOp> ops;
    getOperation().walk([&](kernel::ScanOp op) { ops.push_back(op); });
    for (auto [i, op] : llvm::enumerate(ops))
      if (failed(ScanLowering(op, i).lower()))
        return signalPassFailure();
  }
};

} // namespace
