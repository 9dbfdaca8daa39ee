// Gives buffers a place in the caller's workspace, because a kernel allocates nothing.
#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/CallFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

bool ctxc::isKernel(func::FuncOp function) {
  return !function.isExternal() && function.getNumArguments() > 0 && kernel::roleOf(function, 0);
}

SmallVector<func::FuncOp> ctxc::kernelFunctions(ModuleOp module) {
  return llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), isKernel));
}

/// The bytes of a buffer, rounded up to a multiple of 64.
static Value bytesOf(OpBuilder &b, Location loc, MemRefType type, ValueRange dynamic) {
  int64_t fixed = type.getElementTypeBitWidth() / 8;
  for (int64_t d : type.getShape())
    if (!ShapedType::isDynamic(d))
      fixed *= d;
  Value bytes = arith::ConstantIndexOp::create(b, loc, fixed);
  for (Value size : dynamic)
    bytes = arith::MulIOp::create(b, loc, bytes, size);
  Value mask = arith::ConstantIndexOp::create(b, loc, 63);
  Value up = arith::AddIOp::create(b, loc, bytes, mask);
  Value shift = arith::ConstantIndexOp::create(b, loc, 6);
  return arith::ShLIOp::create(b, loc, arith::ShRUIOp::create(b, loc, up, shift), shift);
}

/// The size of dimension `index` of `memref`, as a value or a number, from the op that defines the
/// memref. Null where the size cannot be derived from that op.
static OpFoldResult sizeOf(Value memref, int64_t index) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(index))
    return OpBuilder(type.getContext()).getIndexAttr(type.getDimSize(index));
  Operation *op = memref.getDefiningOp();
  if (auto alloc = dyn_cast_or_null<memref::AllocOp>(op))
    return alloc.getMixedSizes()[index];
  if (auto expand = dyn_cast_or_null<memref::ExpandShapeOp>(op))
    return expand.getMixedOutputShape()[index];
  if (auto view = dyn_cast_or_null<memref::SubViewOp>(op); view && view.getDroppedDims().none())
    return view.getMixedSizes()[index];
  if (auto cast = dyn_cast_or_null<memref::ReinterpretCastOp>(op))
    return cast.getMixedSizes()[index];
  return {};
}

static Value rebuild(OpBuilder &b, Value value, ArrayRef<KernelArg> args, ValueRange sizes,
                     IRMapping &done);

/// Recomputes the size of dimension `i` of a memref of the kernel from the number of rows and of
/// visible tokens.
static Value rebuildSize(OpBuilder &b, Value memref, int64_t i, ArrayRef<KernelArg> args,
                         ValueRange sizes, IRMapping &done) {
  Location loc = memref.getLoc();
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(i))
    return arith::ConstantIndexOp::create(b, loc, type.getDimSize(i));
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    const KernelArg &arg = args[argument.getArgNumber()];
    bool visible = arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Slots;
    return i == 0 ? sizes[visible ? 1 + arg.run : 0] : Value();
  }
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return rebuildSize(b, cast.getSource(), i, args, sizes, done);
  if (auto collapse = memref.getDefiningOp<memref::CollapseShapeOp>()) {
    Value product;
    const SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
    for (int64_t from : groups[i]) {
      Value factor = rebuildSize(b, collapse.getSrc(), from, args, sizes, done);
      if (!factor)
        return {};
      product = product ? arith::MulIOp::create(b, loc, product, factor) : factor;
    }
    return product;
  }
  OpFoldResult size = sizeOf(memref, i);
  if (auto again = dyn_cast_if_present<Value>(size))
    return rebuild(b, again, args, sizes, done);
  auto number = dyn_cast_if_present<IntegerAttr>(dyn_cast_if_present<Attribute>(size));
  return number ? Value(arith::ConstantIndexOp::create(b, loc, number.getInt())) : Value();
}

/// Recomputes `value`, a size in the kernel, from the number of rows and of visible tokens.
static Value rebuild(OpBuilder &b, Value value, ArrayRef<KernelArg> args, ValueRange sizes,
                     IRMapping &done) {
  if (Value known = done.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return dim.getConstantIndex()
               ? rebuildSize(b, dim.getSource(), *dim.getConstantIndex(), args, sizes, done)
               : Value();
  IRMapping operands;
  for (Value operand : op->getOperands()) {
    Value again = rebuild(b, operand, args, sizes, done);
    if (!again)
      return {};
    operands.map(operand, again);
  }
  if (!isPure(op) || op->getNumResults() != 1)
    return {};
  Value result = b.clone(*op, operands)->getResult(0);
  done.map(value, result);
  return result;
}

static LogicalResult placeIn(func::FuncOp kernel) {
  SmallVector<memref::AllocOp> allocs;
  WalkResult walk = kernel.walk([&](memref::AllocOp op) {
    allocs.push_back(op);
    return op->getBlock() == &kernel.getBody().front() ? WalkResult::advance()
                                                       : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return allocs.back().emitError("a buffer inside a loop cannot be placed in the workspace");

  Location loc = kernel.getLoc();
  SmallVector<KernelArg> args = kernelArguments(kernel);
  OpBuilder b(kernel.getContext());
  Type i64 = b.getI64Type();

  // The function <name>_workspace.
  b.setInsertionPointAfter(kernel);
  auto size = func::FuncOp::create(b, loc, (kernel.getName() + "_workspace").str(),
                                   b.getFunctionType({i64, i64, i64}, {i64}));
  Block *sizeEntry = size.addEntryBlock();
  b.setInsertionPointToStart(sizeEntry);
  SmallVector<Value> sizes;
  for (Value argument : sizeEntry->getArguments())
    sizes.push_back(toIndex(b, loc, argument));
  IRMapping done;
  Value total = arith::ConstantIndexOp::create(b, loc, 64);
  for (memref::AllocOp alloc : allocs) {
    SmallVector<Value> dynamic;
    for (Value value : alloc.getDynamicSizes()) {
      dynamic.push_back(rebuild(b, value, args, sizes, done));
      if (!dynamic.back())
        return alloc.emitError("the size of a buffer does not follow from rows and visible tokens");
    }
    total = arith::AddIOp::create(b, loc, total, bytesOf(b, loc, alloc.getType(), dynamic));
  }
  func::ReturnOp::create(b, loc, ValueRange{toI64(b, loc, total)});

  // The buffers themselves.
  b.setInsertionPointToStart(&kernel.getBody().front());
  Value workspace = loadCallField(b, loc, kernel.getArguments().back(), CallField::Workspace);
  Value offset = arith::ConstantIndexOp::create(b, loc, 0);
  for (memref::AllocOp alloc : allocs) {
    b.setInsertionPoint(alloc);
    Type ptr = workspace.getType();
    Value address = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), workspace,
                                        ArrayRef<LLVM::GEPArg>{toI64(b, loc, offset)});
    offset = arith::AddIOp::create(b, loc, offset,
                                   bytesOf(b, loc, alloc.getType(), alloc.getDynamicSizes()));
    MemRefType type = alloc.getType();
    // A dynamic size beyond the first dimension needs a descriptor with its own strides.
    SmallVector<Value> dynamic(alloc.getDynamicSizes());
    Value memref;
    if (llvm::count_if(type.getShape().drop_front(type.getRank() > 0), ShapedType::isDynamic) ==
        0) {
      memref = memrefAt(b, loc, address, type, dynamic.empty() ? Value() : dynamic.front());
    } else {
      Value bytes = bytesOf(b, loc, type, dynamic);
      Value flat =
          memrefAt(b, loc, address, MemRefType::get({ShapedType::kDynamic}, b.getI8Type()), bytes);
      memref = memref::ViewOp::create(b, loc, type, flat, arith::ConstantIndexOp::create(b, loc, 0),
                                      dynamic);
    }
    alloc.replaceAllUsesWith(memref);
    alloc.erase();
  }
  return success();
}

namespace {

struct PlaceBuffers : ctxc::impl::PlaceBuffersBase<PlaceBuffers> {
  void runOnOperation() override {
    for (func::FuncOp kernel : kernelFunctions(getOperation()))
      if (failed(placeIn(kernel)))
        return signalPassFailure();
  }
};

} // namespace
