#include "lib/Lowering/CPU/RoundVectors.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

int64_t VectorRounder::stride(int64_t k) {
  return (llvm::divideCeil(k, alignment) | 1) * alignment;
}

/// Whether `op` may write to the memory of `root`.
static bool mayWrite(Operation &op, Value root) {
  if (isMemoryEffectFree(&op) || isa<memref::AllocOp>(op))
    return false;
  auto destinations = dyn_cast<DestinationStyleOpInterface>(op);
  return !destinations || llvm::any_of(destinations.getDpsInits(), [&](Value init) {
    Value written = originOf(init).root;
    return !written || written == root;
  });
}

/// Whether no op between `from` and `to` changes the contents of `x`.
static bool staysSame(Value x, Operation *from, Operation *to) {
  Value root = originOf(x).root;
  if (!root || from->getBlock() != to->getBlock())
    return false;
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode())
    if (mayWrite(*op, root))
      return false;
  return true;
}

Value VectorRounder::roundedFor(kernel::ContractOp contraction) {
  Value x = contraction.getVectors();
  if (auto known = made.find(x); known != made.end() && staysSame(x, known->second.at, contraction))
    return known->second.numbers;

  OpBuilder b(contraction);
  Location loc = contraction.getLoc();
  int64_t k = cast<MemRefType>(x.getType()).getDimSize(1), end = llvm::alignTo(k, alignment);
  Value rows = rowsOf(x);
  if (!rows)
    rows = memref::DimOp::create(b, loc, x, 0);
  auto type = MemRefType::get({ShapedType::kDynamic, stride(k)}, b.getBF16Type());
  Value numbers = memref::AllocOp::create(b, loc, type, rows);
  auto columns = [&](int64_t from, int64_t to) -> Value {
    return memref::SubViewOp::create(
        b, loc, numbers, ArrayRef<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(from)},
        ArrayRef<OpFoldResult>{rows, b.getIndexAttr(to - from)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(1)});
  };
  AffineMap identity = b.getMultiDimIdentityMap(2);
  Operation *rounding = linalg::GenericOp::create(
      b, loc, ValueRange{x}, ValueRange{columns(0, k)}, ArrayRef<AffineMap>{identity, identity},
      SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
      [](OpBuilder &nested, Location l, ValueRange a) {
        linalg::YieldOp::create(
            nested, l, arith::TruncFOp::create(nested, l, nested.getBF16Type(), a[0]).getResult());
      });
  if (k < end) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(b.getBF16Type()));
    rounding = linalg::FillOp::create(b, loc, zero, columns(k, end));
  }
  made[x] = {numbers, rounding};
  return numbers;
}
