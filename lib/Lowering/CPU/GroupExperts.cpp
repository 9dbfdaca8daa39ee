#include "lib/Lowering/CPU/GroupExperts.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "lib/Lowering/CPU/LowerCalls.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

namespace {

class ExpertGrouper {
public:
  void group(kernel::ExpertsOp op);

private:
  /// The products of a selection, as ctxc_group_by_expert orders them. All memory is of int64.
  struct Groups {
    Value products; ///< (rows · slots)
    Value places;   ///< (rows, slots)
    Value begins;   ///< (experts + 1)
    Operation *at;  ///< the op that computes them
  };
  Groups groupsOf(kernel::ExpertsOp op);
  /// The vectors of `op` in the order of `groups`, (rows · slots, k).
  Value vectorsInOrder(kernel::ExpertsOp op, const Groups &groups);
  void multiply(kernel::ExpertsOp op, const Groups &groups, Value vectors, Value sums);

  llvm::DenseMap<std::pair<Value, int64_t>, Groups> grouped; ///< by selection and experts
  llvm::DenseMap<std::pair<Value, Value>, std::pair<Value, Operation *>> ordered;
};

int64_t expertsOf(kernel::ExpertsOp op) {
  return cast<RankedTensorType>(op.getStored()).getDimSize(0);
}

Value index(OpBuilder &b, Location loc, int64_t i) {
  return arith::ConstantIndexOp::create(b, loc, i);
}

Value asIndex(OpBuilder &b, Location loc, Value number) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

ExpertGrouper::Groups ExpertGrouper::groupsOf(kernel::ExpertsOp op) {
  Value selected = op.getSelected();
  Groups &groups = grouped[{selected, expertsOf(op)}];
  if (groups.at && staysSame(selected, groups.at, op))
    return groups;
  OpBuilder b(op);
  Location loc = op.getLoc();
  int64_t slots = cast<MemRefType>(selected.getType()).getDimSize(1);
  Value rows = rowsOf(b, loc, op.getSums());
  Value count = arith::MulIOp::create(b, loc, rows, index(b, loc, slots));
  auto allocated = [&](ArrayRef<int64_t> shape, ValueRange sizes) {
    return memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getI64Type()), sizes);
  };
  groups.products = allocated({ShapedType::kDynamic}, count);
  groups.places = allocated({ShapedType::kDynamic, slots}, rows);
  groups.begins = allocated({expertsOf(op) + 1}, {});
  callSupport(b, loc, kernel::SupportFunction::ctxc_group_by_expert,
              {addressOf(b, loc, selected), toI64(b, loc, count),
               toI64(b, loc, index(b, loc, expertsOf(op))), addressOf(b, loc, groups.products),
               addressOf(b, loc, groups.places), addressOf(b, loc, groups.begins)});
  groups.at = op->getPrevNode();
  return groups;
}

Value ExpertGrouper::vectorsInOrder(kernel::ExpertsOp op, const Groups &groups) {
  Value vectors = op.getVectors();
  auto &[known, at] = ordered[{vectors, groups.products}];
  if (known && staysSame(vectors, at, op))
    return known;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(vectors.getType());
  int64_t slots = cast<MemRefType>(groups.places.getType()).getDimSize(1);
  known = memref::AllocOp::create(
      b, loc,
      MemRefType::get({ShapedType::kDynamic, type.getShape().back()}, type.getElementType()),
      rowsOf(groups.products));
  AffineMap both = b.getMultiDimIdentityMap(2), first = both.dropResult(1);
  at = linalg::GenericOp::create(
      b, loc, groups.products, known, {first, both},
      SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
      [&](OpBuilder &nested, Location l, ValueRange a) {
        Value product = asIndex(nested, l, a[0]), count = index(nested, l, slots);
        SmallVector<Value> from{arith::DivUIOp::create(nested, l, product, count)};
        if (type.getRank() == 3)
          from.push_back(arith::RemUIOp::create(nested, l, product, count));
        from.push_back(linalg::IndexOp::create(nested, l, 1));
        Value number = memref::LoadOp::create(nested, l, vectors, from);
        linalg::YieldOp::create(nested, l, number);
      });
  return known;
}

/// The matrix of `op` that is stored at `address`.
Value matrixAt(OpBuilder &b, kernel::ExpertsOp op, Value address) {
  Location loc = op.getLoc();
  auto bank = cast<RankedTensorType>(op.getStored());
  auto stored = cast<RankedTensorType>(bank.clone(bank.getShape().drop_front()));
  if (!isa<xf::QuantizedType>(stored.getElementType()))
    return memrefAt(b, loc, address, MemRefType::get(stored.getShape(), stored.getElementType()),
                    {});
  auto bytes = MemRefType::get({xf::QuantizedType::bytesOf(stored)}, b.getI8Type());
  auto matrix =
      kernel::QuantizedOp::create(b, loc, MemRefType::get(stored.getShape(), b.getF32Type()),
                                  memrefAt(b, loc, address, bytes, {}), TypeAttr::get(stored));
  kernel::copyIntegerMark(op, matrix);
  return matrix;
}

/// Some rows of `memory`.
Value rowsAt(OpBuilder &b, Location loc, Value memory, Value first, Value count) {
  int64_t width = cast<MemRefType>(memory.getType()).getDimSize(1);
  return memref::SubViewOp::create(b, loc, memory, ArrayRef<OpFoldResult>{first, b.getIndexAttr(0)},
                                   ArrayRef<OpFoldResult>{count, b.getIndexAttr(width)},
                                   ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(1)});
}

void ExpertGrouper::multiply(kernel::ExpertsOp op, const Groups &groups, Value vectors,
                             Value sums) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value one = index(b, loc, 1), none = index(b, loc, 0);
  auto loop = scf::ForOp::create(b, loc, none, index(b, loc, expertsOf(op)), one);
  b.setInsertionPointToStart(loop.getBody());
  Value expert = loop.getInductionVar();
  auto begin = [&](Value i) {
    return asIndex(b, loc, memref::LoadOp::create(b, loc, groups.begins, i));
  };
  Value first = begin(expert), end = begin(arith::AddIOp::create(b, loc, expert, one));
  Value count = arith::SubIOp::create(b, loc, end, first);
  Value isSelected = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, count, none);
  auto branch = scf::IfOp::create(b, loc, isSelected, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  Value address = memref::LoadOp::create(b, loc, op.getBank(), expert);
  address = LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  Value matrix = matrixAt(b, op, address);
  Value from = rowsAt(b, loc, vectors, first, count), to = rowsAt(b, loc, sums, first, count);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  linalg::FillOp::create(b, loc, zero, to);
  kernel::ContractOp::create(b, loc, matrix, from, to, op.getTransposed());
}

void ExpertGrouper::group(kernel::ExpertsOp op) {
  Groups groups = groupsOf(op);
  Value vectors = vectorsInOrder(op, groups);
  OpBuilder b(op);
  Location loc = op.getLoc();
  int64_t width = cast<MemRefType>(op.getSums().getType()).getDimSize(2);
  Value sums = memref::AllocOp::create(
      b, loc, MemRefType::get({ShapedType::kDynamic, width}, b.getF32Type()),
      rowsOf(groups.products));
  multiply(op, groups, vectors, sums);
  AffineMap all = b.getMultiDimIdentityMap(3);
  linalg::GenericOp::create(
      b, loc, groups.places, op.getSums(), {all.dropResult(2), all},
      SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel),
      [&](OpBuilder &nested, Location l, ValueRange a) {
        Value place = asIndex(nested, l, a[0]), column = linalg::IndexOp::create(nested, l, 2);
        Value sum = memref::LoadOp::create(nested, l, sums, ValueRange{place, column});
        linalg::YieldOp::create(nested, l, sum);
      });
  op.erase();
}

} // namespace

std::optional<OfExpert> ctxc::ofExpert(kernel::ContractOp contraction) {
  auto loop = contraction->getParentOfType<scf::ForOp>();
  if (!loop)
    return std::nullopt;
  auto rows = contraction.getVectors().getDefiningOp<memref::SubViewOp>();
  return OfExpert{rows.getSource(), cast<Value>(rows.getMixedOffsets().front()), loop};
}

void ctxc::groupExperts(ModuleOp module) {
  SmallVector<kernel::ExpertsOp> ops;
  module.walk([&](kernel::ExpertsOp op) { ops.push_back(op); });
  ExpertGrouper grouper;
  for (kernel::ExpertsOp op : ops)
    grouper.group(op);
}
