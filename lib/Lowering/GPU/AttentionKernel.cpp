#include "lib/Lowering/GPU/AttentionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

/// Heads that share what a subgroup reads, at most; and the numbers of mixed values that a lane
/// then has at most.
static constexpr int64_t headsOfBlock = 4, numbersOfLane = 32;
/// Slots that a subgroup reads before it uses the first, and the numbers that a lane then has.
static constexpr int64_t slotsAhead = 4, numbersAhead = 16;
/// The blocks of all groups of heads that fill a large device, of models that fill one: of others
/// there is a block for each `numbersOfBlock` products of a slot. And the splits of a group, at
/// least and at most. All are powers of two.
static constexpr int64_t blocksOfDevice = 256, numbersOfBlock = 8, fewestSplits = 8,
                         mostSplits = 128;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

AttentionShape::AttentionShape(const RowOp &row, const GpuTarget &target)
    : row(row), op(cast<kernel::AttentionOp>(row.op)), lanes(target.subgroup()),
      groups(row.loops[Group].fixed), repeat(row.loops[Head].fixed), out(row.loops[Out].fixed),
      keys(piecesOf(1, In)), values(piecesOf(2, Out)) {
  if (keys.access->view.root == values.access->view.root && keys.inFours != values.inFours)
    keys = scalars(keys), values = scalars(values);
  int64_t most = std::max<int64_t>(std::min(headsOfBlock, numbersOfLane / values.perLane), 1);
  parts = llvm::divideCeil(repeat, most);
  heads = llvm::divideCeil(repeat, parts);
  ahead = std::clamp<int64_t>(numbersAhead / std::max(keys.perLane, values.perLane), 1, slotsAhead);
  int64_t products = groups * repeat * (keys.size + values.size);
  int64_t blocks = std::min<int64_t>(blocksOfDevice, llvm::divideCeil(products, numbersOfBlock));
  int64_t wanted = llvm::PowerOf2Ceil(llvm::divideCeil(blocks, groups * parts));
  splits = std::clamp(wanted, fewestSplits, mostSplits);
  OpBuilder b(op);
  partial = memref::AllocOp::create(
      b, op.getLoc(), MemRefType::get({splits * groups * repeat * (out + 2)}, b.getF32Type()));
}

AttentionShape::Pieces AttentionShape::scalars(Pieces p) const {
  p.inFours = false;
  p.perLane = llvm::divideCeil(p.size, lanes);
  return p;
}

AttentionShape::Pieces AttentionShape::piecesOf(size_t operand, Loop along) const {
  const Access &access = *row.accesses[operand];
  Pieces made = scalars({&access, along, row.loops[along].fixed, false, 0});
  auto isWhole = [](const Extent &e) { return e.isFixed() && e.fixed % 4 == 0; };
  auto count = elementsOf(access.view.root);
  int64_t users = llvm::count_if(row.accesses, [&](const std::optional<Access> &other) {
    return other && other->view.root == access.view.root;
  });
  bool areBoth = row.accesses[1]->view.root == row.accesses[2]->view.root;
  made.inFours = cast<MemRefType>(access.view.root.getType()).getElementType().isF32() &&
                 made.size % (4 * lanes) == 0 && access.steps[along] == fixedExtent(1) &&
                 isWhole(access.offset) && isWhole(access.steps[Group]) &&
                 isWhole(access.steps[Slot]) && count && (!count->isFixed() || isWhole(*count)) &&
                 users == (areBoth ? 2 : 1);
  return made;
}

//===----------------------------------------------------------------------===//
// Numbers and memory
//===----------------------------------------------------------------------===//

Value AttentionWriter::real(double x) {
  return arith::ConstantOp::create(w.b, w.loc, w.b.getF32FloatAttr(float(x)));
}

Value AttentionWriter::plus(Value a, Value b) { return arith::AddFOp::create(w.b, w.loc, a, b); }

Value AttentionWriter::times(Value a, Value b) { return arith::MulFOp::create(w.b, w.loc, a, b); }

Value AttentionWriter::larger(Value a, Value b) {
  return arith::MaximumFOp::create(w.b, w.loc, a, b);
}

Value AttentionWriter::multiplyAdd(Value a, Value b, Value sum) {
  auto fast = arith::FastMathFlags::contract;
  return arith::AddFOp::create(w.b, w.loc, arith::MulFOp::create(w.b, w.loc, a, b, fast), sum,
                               fast);
}

Value AttentionWriter::weightOf(Value x, Value largest) {
  Value none =
      arith::CmpFOp::create(w.b, w.loc, arith::CmpFPredicate::OEQ, largest, real(-INFINITY));
  Value from = arith::SelectOp::create(w.b, w.loc, none, real(0), largest);
  return math::ExpOp::create(w.b, w.loc, arith::SubFOp::create(w.b, w.loc, x, from));
}

Value AttentionWriter::sumOfLanes(Value x) {
  return w.combineLanes(x, [&](Value a, Value b) { return plus(a, b); });
}

Value AttentionWriter::largestOfLanes(Value x) {
  return w.combineLanes(x, [&](Value a, Value b) { return larger(a, b); });
}

Value AttentionWriter::isZero(Value i) {
  return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, i, w.index(0));
}

Value AttentionWriter::read(size_t operand, const Values &indices) {
  const Access &access = *shape.row.accesses[operand];
  return w.load(access.view.root, w.at(access, indices));
}

SmallVector<Value> AttentionWriter::indices(Value head, Value slot) {
  Value zero = w.index(0);
  return {zero, group, head, slot, zero, zero};
}

Value AttentionWriter::partialAt(Value split, Value head) {
  Value flat = w.add(by(w.add(by(split, shape.groups), group), shape.repeat), head);
  return by(flat, shape.out + 2);
}

Value AttentionWriter::sharedMemory(int64_t numbers) {
  auto space = gpu::AddressSpaceAttr::get(w.b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({numbers}, w.b.getF32Type(), MemRefLayoutAttrInterface(), space);
  return w.function.addWorkgroupAttribution(type, w.loc);
}

Value AttentionWriter::beginOf(Value slots) {
  if (!op.getWindow())
    return w.index(0);
  Value window = arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(),
                                            read(operand(op.getWindowMutable()), {w.index(0)}));
  Value isLimited =
      arith::AndIOp::create(w.b, w.loc, w.isBelow(w.index(0), window), w.isBelow(window, slots));
  return arith::SelectOp::create(w.b, w.loc, isLimited,
                                 arith::SubIOp::create(w.b, w.loc, slots, window), w.index(0));
}

Value AttentionWriter::usedSplits(Value slots) {
  constexpr int64_t n = AttentionShape::subgroupsOfBlock;
  Value all = w.index(shape.splits);
  Value needed = arith::DivUIOp::create(w.b, w.loc, w.add(slots, w.index(n - 1)), w.index(n));
  Value used = arith::MinUIOp::create(w.b, w.loc,
                                      arith::MaxUIOp::create(w.b, w.loc, needed, w.index(1)), all);
  return op.getWindow() ? arith::SelectOp::create(w.b, w.loc, isZero(beginOf(slots)), used, all)
                        : used;
}

WrittenAttention gpu_lowering::writeAttention(gpu::GPUModuleOp module, StringRef name,
                                              const Step &step, const GpuTarget &target) {
  AttentionShape shape(step.ops.front(), target);
  WrittenKernel parts = writeAttentionParts(module, name, shape, target);
  WrittenKernel join = writeAttentionJoin(module, (name + "_join").str(), shape, target);
  return {parts, join, 4 * cast<MemRefType>(shape.partial.getType()).getNumElements()};
}
