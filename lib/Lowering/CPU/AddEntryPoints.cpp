// The C entry of each kernel: it unpacks ctxc_call into memrefs, calls the kernel, and returns a
// status.
#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Program/ctxc_kernel.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_ADDENTRYPOINTS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

/// The sum of the harmful counts at `counts`, an array of (harmless, harmful) pairs.
static Value sumHarmful(OpBuilder &b, Location loc, Value counts, Value pairs) {
  Type i64 = b.getI64Type();
  Value none = arith::ConstantIntOp::create(b, loc, 0, 64);
  if (!counts)
    return none;
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  auto loop = scf::ForOp::create(b, loc, index(0), pairs, index(1), none);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value pair = toI64(b, loc, loop.getInductionVar());
  Value address = LLVM::GEPOp::create(b, loc, counts.getType(), LLVM::LLVMArrayType::get(i64, 2),
                                      counts, ArrayRef<LLVM::GEPArg>{pair, 1});
  Value sum = arith::AddIOp::create(b, loc, loop.getRegionIterArg(0),
                                    LLVM::LoadOp::create(b, loc, i64, address));
  scf::YieldOp::create(b, loc, sum);
  return loop.getResult(0);
}

static void addEntryPoint(func::FuncOp kernel) {
  std::string name = kernel.getName().str();
  kernel.setName(name + "_body");
  OpBuilder b(kernel.getContext());
  b.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto entry = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr}, {b.getI32Type()}));
  Block *block = entry.addEntryBlock();
  b.setInsertionPointToStart(block);
  Value call = block->getArgument(0);
  Value rows = toIndex(b, loc, loadCallField(b, loc, call, CallField::Rows));
  Value visible[2] = {toIndex(b, loc, loadCallField(b, loc, call, CallField::Visible, 0)),
                      toIndex(b, loc, loadCallField(b, loc, call, CallField::Visible, 1))};
  Value arguments = loadCallField(b, loc, call, CallField::Arguments);
  SmallVector<Value> operands;
  Value counts, pairs; // for each row, one pair for each obligation
  for (auto [i, arg] : llvm::enumerate(kernelArguments(kernel))) {
    Value slot =
        LLVM::GEPOp::create(b, loc, ptr, ptr, arguments, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    Value address = LLVM::LoadOp::create(b, loc, ptr, slot);
    if (arg.kind == KernelArgKind::Counts) {
      counts = address;
      pairs = arith::ConstantIndexOp::create(b, loc, cast<MemRefType>(arg.type).getDimSize(1));
      pairs = arith::MulIOp::create(b, loc, rows, pairs);
    }
    bool state = arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Slots;
    operands.push_back(
        memrefAt(b, loc, address, cast<MemRefType>(arg.type), state ? visible[arg.run] : rows));
  }
  operands.push_back(call);
  Value before = sumHarmful(b, loc, counts, pairs);
  func::CallOp::create(b, loc, kernel, operands);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                     sumHarmful(b, loc, counts, pairs), before);
  Value status = arith::ExtUIOp::create(b, loc, b.getI32Type(), more);
  static_assert(CTXC_GOOD == 0 && CTXC_INEXACT == 1);
  func::ReturnOp::create(b, loc, status);
  kernel.removeArgAttrsAttr(); // the roles have been used: the entry has unpacked the call
}

namespace {

struct AddEntryPoints : ctxc::impl::AddEntryPointsBase<AddEntryPoints> {
  void runOnOperation() override {
    for (func::FuncOp kernel : kernelFunctions(getOperation())) {
      WalkResult walk = kernel.walk([](memref::AllocOp alloc) {
        alloc.emitError("a kernel allocates no memory: run ctxc-place-buffers before "
                        "ctxc-add-entry-points");
        return WalkResult::interrupt();
      });
      if (walk.wasInterrupted())
        return signalPassFailure();
      addEntryPoint(kernel);
    }
  }
};

} // namespace
