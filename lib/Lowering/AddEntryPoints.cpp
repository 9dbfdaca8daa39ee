// The C entry of a kernel: unpacks ctxc_call into memrefs.
#include "lib/Lowering/CallFrame.h"
#include "lib/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ctxc;

static void addEntryPoint(func::FuncOp kernel) {
  std::string name = kernel.getName().str();
  kernel.setName(name + "_body");
  OpBuilder b(kernel.getContext());
  b.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto entry = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr}, {}));
  Block *block = entry.addEntryBlock();
  b.setInsertionPointToStart(block);
  Value call = block->getArgument(0);
  Value rows = toIndex(b, loc, loadCallField(b, loc, call, CallField::Rows));
  Value visible[2] = {toIndex(b, loc, loadCallField(b, loc, call, CallField::Visible, 0)),
                      toIndex(b, loc, loadCallField(b, loc, call, CallField::Visible, 1))};
  Value arguments = loadCallField(b, loc, call, CallField::Arguments);
  SmallVector<Value> operands;
  for (auto [i, arg] : llvm::enumerate(kernelArguments(kernel))) {
    Value slot =
        LLVM::GEPOp::create(b, loc, ptr, ptr, arguments, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    Value address = LLVM::LoadOp::create(b, loc, ptr, slot);
    bool state = arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Slots;
    operands.push_back(
        memrefAt(b, loc, address, cast<MemRefType>(arg.type), state ? visible[arg.stream] : rows));
  }
  operands.push_back(call);
  func::CallOp::create(b, loc, kernel, operands);
  func::ReturnOp::create(b, loc);
}

void ctxc::addEntryPoints(ModuleOp module) {
  for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (isKernel(kernel))
      addEntryPoint(kernel);
}
