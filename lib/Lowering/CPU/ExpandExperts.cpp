#include "lib/Lowering/CPU/ExpandExperts.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

/// Vector number `index` in memory that holds vectors of `n` float32, as a matrix of one row.
static Value vectorAt(OpBuilder &b, Location loc, Value memory, Value index, int64_t n) {
  Value base = addressOf(b, loc, memory);
  Value first = arith::MulIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, n));
  Value address = LLVM::GEPOp::create(b, loc, base.getType(), b.getF32Type(), base,
                                      ArrayRef<LLVM::GEPArg>{toI64(b, loc, first)});
  return memrefAt(b, loc, address, MemRefType::get({1, n}, b.getF32Type()), {});
}

/// The matrix of `op` that is stored at `address`.
static Value matrixAt(OpBuilder &b, kernel::ExpertsOp op, Value address, RankedTensorType stored) {
  Location loc = op.getLoc();
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

static void expand(kernel::ExpertsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value x = op.getVectors(), y = op.getSums();
  auto bank = cast<RankedTensorType>(op.getStored());
  ArrayRef<int64_t> shape = cast<MemRefType>(y.getType()).getShape();
  auto vectors = cast<MemRefType>(x.getType());
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  auto enter = [&](Value count) {
    auto loop = scf::ForOp::create(b, loc, index(0), count, index(1));
    b.setInsertionPointToStart(loop.getBody());
    return loop.getInductionVar();
  };
  Value rows = memref::DimOp::create(b, loc, y, 0), slots = index(shape[1]);
  Value row = enter(rows), slot = enter(slots);
  Value vector = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, row, slots), slot);
  Value expert = memref::LoadOp::create(b, loc, op.getSelected(), ValueRange{row, slot});
  expert = arith::IndexCastOp::create(b, loc, b.getIndexType(), expert);
  Value address = memref::LoadOp::create(b, loc, op.getBank(), ValueRange{expert});
  address = LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  Value matrix = matrixAt(b, op, address, bank.clone(bank.getShape().drop_front()));
  Value from =
      vectorAt(b, loc, x, vectors.getRank() == 2 ? row : vector, vectors.getShape().back());
  Value to = vectorAt(b, loc, y, vector, shape[2]);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  linalg::FillOp::create(b, loc, zero, to);
  kernel::ContractOp::create(b, loc, matrix, from, to, op.getTransposed());
  op.erase();
}

void ctxc::expandExperts(ModuleOp module) {
  SmallVector<kernel::ExpertsOp> ops;
  module.walk([&](kernel::ExpertsOp op) { ops.push_back(op); });
  for (kernel::ExpertsOp op : ops)
    expand(op);
}
