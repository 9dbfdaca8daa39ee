#include "lib/Lowering/CPU/LowerCalls.h"
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_LOWERCALLS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

Value ctxc::callSupport(OpBuilder &b, Location loc, kernel::SupportFunction function,
                        ValueRange operands) {
  kernel::Signature signature = kernel::signatureOf(function, b.getContext());
  auto module = b.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto declared = module.lookupSymbol<func::FuncOp>(signature.name);
  if (!declared) {
    Type ptr = LLVM::LLVMPointerType::get(b.getContext());
    SmallVector<Type> types;
    for (const kernel::Parameter &parameter : signature.parameters)
      types.push_back(parameter.isMemory ? ptr : parameter.type);
    OpBuilder declare(module.getBodyRegion());
    auto type = b.getFunctionType(types, signature.returnsAddress ? ptr : TypeRange());
    declared = func::FuncOp::create(declare, loc, signature.name, type);
    declared.setPrivate();
  }
  auto call = func::CallOp::create(b, loc, declared, operands);
  return signature.returnsAddress ? call.getResult(0) : Value();
}

/// A loop over the rows, with the call of a row. The addresses of memory are computed before it, so
/// that they can be passed to a function that the loop becomes.
static void lower(kernel::CallOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> operands;
  for (Attribute number : op.getNumbers())
    operands.push_back(arith::ConstantOp::create(b, loc, cast<TypedAttr>(number)));
  llvm::SmallDenseMap<Value, Value> addresses;
  for (Value memory : op.getMemory()) {
    while (auto cast = memory.getDefiningOp<memref::CastOp>())
      memory = cast.getSource();
    Value &address = addresses[memory];
    if (!address)
      address = addressOf(b, loc, memory);
    operands.push_back(address);
  }
  Value rows = rowsOf(b, loc, op.getMemory().back());
  auto loop = scf::ForOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, 0), rows,
                                 arith::ConstantIndexOp::create(b, loc, 1));
  kernel::mark<kernel::RowLoop>(loop);
  b.setInsertionPointToStart(loop.getBody());
  Value row = toI64(b, loc, loop.getInductionVar());
  const kernel::Signature signature = op.getSignature();
  for (auto [i, memory] : llvm::enumerate(signature.memory())) {
    if (memory.isShared)
      continue;
    Value &address = operands[op.getNumbers().size() + i];
    Value distance = arith::ConstantIntOp::create(
        b, loc, op.getRowDistance(i) * memory.type.getIntOrFloatBitWidth() / 8, 64);
    address = LLVM::GEPOp::create(
        b, loc, address.getType(), b.getI8Type(), address,
        ArrayRef<LLVM::GEPArg>{arith::MulIOp::create(b, loc, row, distance).getResult()});
  }
  callSupport(b, loc, op.getFunction(), operands);
  op.erase();
}

namespace {

struct LowerCalls : ctxc::impl::LowerCallsBase<LowerCalls> {
  void runOnOperation() override { getOperation().walk(lower); }
};

} // namespace
