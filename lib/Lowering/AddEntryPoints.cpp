// The C entry of a kernel: unpacks ctxc_call into memrefs, and gives the status.
#include "ctxc/Runtime/ctxc_kernel.h"
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

/// The sum of all harmful counts at `counts`, an array of pairs.
static Value sumHarmful(OpBuilder &b, Location loc, Value counts, int64_t obligations) {
  Type i64 = b.getI64Type();
  Value sum = arith::ConstantIntOp::create(b, loc, 0, 64);
  for (int64_t i = 0; i < obligations; ++i) {
    Value address = LLVM::GEPOp::create(b, loc, counts.getType(), i64, counts,
                                        ArrayRef<LLVM::GEPArg>{int32_t(2 * i + 1)});
    sum = arith::AddIOp::create(b, loc, sum, LLVM::LoadOp::create(b, loc, i64, address));
  }
  return sum;
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
  Value counts;
  int64_t obligations = 0;
  for (auto [i, arg] : llvm::enumerate(kernelArguments(kernel))) {
    Value slot =
        LLVM::GEPOp::create(b, loc, ptr, ptr, arguments, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    Value address = LLVM::LoadOp::create(b, loc, ptr, slot);
    if (arg.kind == KernelArgKind::Counts) {
      counts = address;
      obligations = cast<MemRefType>(arg.type).getDimSize(0);
    }
    bool state = arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Slots;
    operands.push_back(
        memrefAt(b, loc, address, cast<MemRefType>(arg.type), state ? visible[arg.stream] : rows));
  }
  operands.push_back(call);
  Value before = sumHarmful(b, loc, counts, obligations);
  func::CallOp::create(b, loc, kernel, operands);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                     sumHarmful(b, loc, counts, obligations), before);
  Value status = arith::ExtUIOp::create(b, loc, b.getI32Type(), more);
  static_assert(CTXC_GOOD == 0 && CTXC_INEXACT == 1);
  func::ReturnOp::create(b, loc, status);
}

void ctxc::addEntryPoints(ModuleOp module) {
  for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (isKernel(kernel))
      addEntryPoint(kernel);
}
