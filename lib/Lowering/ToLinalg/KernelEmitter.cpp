// Turns a block into a kernel: its arguments, and the walk over its ops. KernelBuilding.cpp has the
// functions that build ops.
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Lowering/LinalgArith.h"
#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;

namespace ctxc {
#define GEN_PASS_DEF_BLOCKSTOLINALG
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

#include "ctxc/Lowering/LoweringInterface.cpp.inc"

int64_t ctxc::runIndex(std::optional<xf::Run> run) { return run == xf::Run::reduced ? 1 : 0; }

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

SmallVector<KernelArg> ctxc::kernelArguments(func::FuncOp kernel) {
  SmallVector<KernelArg> args;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (kernel::ArgAttr role = kernel::roleOf(kernel, i)) // the other argument is the call itself
      args.push_back({role.getKind(), role.getName() ? role.getName().str() : std::string(),
                      role.getIndex(), int64_t(role.getRun()), kernel.getArgumentTypes()[i],
                      role.getStored()});
  return args;
}

int64_t ctxc::groupsOfState(const KernelArg &state) {
  auto type = cast<MemRefType>(state.type);
  return type.getRank() == 3 ? type.getDimSize(1) : 1;
}

KernelEmitter::KernelEmitter(xf::BlockOp block, ModuleOp module, StringRef name, StateLayout layout)
    : builder(module.getContext()), loc(block.getLoc()), block(block), module(module),
      name(name.str()), layout(layout) {}

void KernelEmitter::addArgument(KernelArgKind kind, MemRefType type, StringRef name, int64_t index,
                                int64_t run) {
  args.push_back({kind, name.str(), index, run, type, {}});
}

/// A memref of `shape` with a leading dynamic dimension.
static MemRefType memoryOfTokens(ArrayRef<int64_t> shape, Type element) {
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  return MemRefType::get(full, element);
}

void KernelEmitter::addArguments() {
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  addArgument(KernelArgKind::Positions, memoryOfTokens({}, i32));
  addArgument(KernelArgKind::Tokens, memoryOfTokens({}, i32));
  for (auto [i, type] : llvm::enumerate(block.getArgumentTypes()))
    addArgument(KernelArgKind::Input, memoryOfTokens(cast<RankedTensorType>(type).getShape(), f32),
                "", i);
  for (auto [i, type] : llvm::enumerate(block.getResultTypes()))
    addArgument(KernelArgKind::Output, memoryOfTokens(cast<RankedTensorType>(type).getShape(), f32),
                "", i);

  llvm::StringSet<> seenParams, seenSettings;
  block.walk([&](xf::ParamOp p) {
    if (!seenParams.insert(p.getName()).second)
      return;
    RankedTensorType type = ranked(p.getResult());
    if (isBank(p)) {
      addArgument(KernelArgKind::Bank, MemRefType::get({type.getDimSize(0)}, i64), p.getName());
      args.back().stored = type;
    } else if (isa<xf::QuantizedType>(type.getElementType())) {
      addArgument(KernelArgKind::Param,
                  MemRefType::get({xf::QuantizedType::bytesOf(type)}, builder.getI8Type()),
                  p.getName());
      args.back().stored = type;
    } else {
      addArgument(KernelArgKind::Param, MemRefType::get(type.getShape(), type.getElementType()),
                  p.getName());
    }
  });
  block.walk([&](xf::SettingOp s) {
    if (!seenSettings.insert(s.getName()).second)
      return;
    auto tensor = dyn_cast<RankedTensorType>(s.getType());
    addArgument(KernelArgKind::Setting,
                tensor ? MemRefType::get(tensor.getShape(), f32)
                       : MemRefType::get({1}, s.getType().isF32() ? f32 : i64),
                s.getName());
  });
  addStates();
  addPatchParts();
}

/// What contextual ops keep from token to token.
void KernelEmitter::addStates() {
  Type f32 = builder.getF32Type();
  int64_t states = 0, carried = 0;
  bool runs[2] = {false, false}, areApart[2] = {false, false};
  block.walk([&](xf::ContextualOpInterface op) {
    int64_t run = runIndex(op.getStateRun());
    if (RankedTensorType type = op.getCarried()) {
      addArgument(KernelArgKind::Before, MemRefType::get(type.getShape(), f32), "", carried, run);
      if (run == 0)
        addArgument(KernelArgKind::After, MemRefType::get(type.getShape(), f32), "", carried);
      firstState[op] = carried++;
      return;
    }
    firstState[op] = states;
    runs[run] = true;
    Type kept = kernel::isMarked<kernel::RoundedState>(op) ? builder.getBF16Type() : f32;
    for (Value operand : op.getStateOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType())) {
        addArgument(KernelArgKind::State, memoryOfTokens(type.getShape(), kept), "", states++, run);
        areApart[run] |= layout == StateLayout::ByGroup && groupsOfState(args.back()) > 1;
      }
  });
  for (int64_t run : {0, 1}) {
    if (runs[run])
      addArgument(KernelArgKind::Slots, memoryOfTokens({}, builder.getI32Type()), "", 0, run);
    if (areApart[run])
      addArgument(KernelArgKind::Room, MemRefType::get({1}, builder.getI64Type()), "", 0, run);
  }
}

/// What a patch stores or loads, and what it says of itself.
void KernelEmitter::addPatchParts() {
  int64_t obligations = 0;
  block.walk([&](Operation *op) {
    if (auto store = dyn_cast<patch::StoreOp>(op))
      for (auto [i, part] : llvm::enumerate(store.getParts()))
        addArgument(KernelArgKind::Store,
                    memoryOfTokens(ranked(part).getShape(), ranked(part).getElementType()),
                    store.getParameter(), i);
    if (auto load = dyn_cast<patch::LoadOp>(op))
      for (auto [i, part] : llvm::enumerate(load.getParts()))
        addArgument(KernelArgKind::Load,
                    MemRefType::get(ranked(part).getShape(), ranked(part).getElementType()),
                    load.getParameter(), i);
    if (auto solve = dyn_cast<patch::SolveScaleOp>(op))
      obligations = std::max<int64_t>(obligations, solve.getIndex() + 1);
    if (auto obligation = dyn_cast<patch::ObligationOp>(op))
      obligations = std::max<int64_t>(obligations, obligation.getIndex() + 1);
    if (auto same = dyn_cast<patch::SameSelectionOp>(op))
      obligations = std::max<int64_t>(obligations, same.getIndex() + 1);
  });
  if (obligations)
    addArgument(KernelArgKind::Counts, memoryOfTokens({obligations, 2}, builder.getI64Type()));
  if (!block.getBody().getOps<patch::StoreOp>().empty())
    addArgument(KernelArgKind::Replay, memoryOfTokens({}, builder.getF64Type()));
}

Value KernelEmitter::argument(KernelArgKind kind, StringRef name, int64_t index) {
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == kind && arg.name == name && arg.index == index)
      return kernel.getArgument(i);
  llvm_unreachable("the kernel has no such argument");
}

static Value readTensor(OpBuilder &b, Location loc, Value memref, bool writable = false) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(
      b, loc, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
      /*restrict=*/true, writable);
}

bool KernelEmitter::isBank(xf::ParamOp param) {
  return llvm::any_of(param->getUsers(), [](Operation *op) {
    return isa<xf::ExpertLinearOp, patch::ExpertLinearsOp>(op);
  });
}

Value KernelEmitter::param(StringRef name) {
  auto argument = cast<BlockArgument>(this->argument(KernelArgKind::Param, name, 0));
  RankedTensorType stored = args[argument.getArgNumber()].stored;
  return readTensor(builder, loc, stored ? quantizedMatrix(argument, stored) : Value(argument));
}

Value KernelEmitter::quantizedMatrix(Value memory, RankedTensorType stored) {
  auto numbers = MemRefType::get(stored.getShape(), builder.getF32Type());
  return kernel::QuantizedOp::create(builder, loc, numbers, memory, TypeAttr::get(stored));
}

kernel::QuantizedOp KernelEmitter::quantized(Value value) {
  if (auto tensor = value.getDefiningOp<bufferization::ToTensorOp>())
    value = tensor.getBuffer();
  return value.getDefiningOp<kernel::QuantizedOp>();
}

Value KernelEmitter::setting(StringRef name) {
  return readTensor(builder, loc, argument(KernelArgKind::Setting, name, 0));
}

SmallVector<Value> KernelEmitter::states(Operation *op) {
  SmallVector<Value> memrefs;
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == KernelArgKind::State && arg.index >= firstState.lookup(op) &&
        arg.index < firstState.lookup(op) +
                        int64_t(cast<xf::ContextualOpInterface>(op).getStateOperands().size()))
      memrefs.push_back(withGroups(kernel.getArgument(i), arg));
  return memrefs;
}

Value KernelEmitter::withGroups(Value argument, const KernelArg &state) {
  const int64_t groups = groupsOfState(state);
  if (layout == StateLayout::ByToken || groups == 1)
    return argument;
  auto type = cast<MemRefType>(state.type);
  const int64_t width = type.getDimSize(2);
  Value room =
      memref::LoadOp::create(builder, loc, ofRun(KernelArgKind::Room, state.run), index(0));
  Value apart = arith::MulIOp::create(
      builder, loc, arith::IndexCastOp::create(builder, loc, builder.getIndexType(), room),
      index(width));
  OpFoldResult sizes[] = {memref::DimOp::create(builder, loc, argument, 0).getResult(),
                          builder.getIndexAttr(groups), builder.getIndexAttr(width)};
  OpFoldResult strides[] = {builder.getIndexAttr(width), apart, builder.getIndexAttr(1)};
  auto layoutOfGroups =
      StridedLayoutAttr::get(builder.getContext(), /*offset=*/0, {width, ShapedType::kDynamic, 1});
  return memref::ReinterpretCastOp::create(
      builder, loc, MemRefType::get(type.getShape(), type.getElementType(), layoutOfGroups),
      argument, builder.getIndexAttr(0), sizes, strides);
}

Value KernelEmitter::before(Operation *op) {
  return argument(KernelArgKind::Before, "", firstState.lookup(op));
}

Value KernelEmitter::after(Operation *op) {
  bool isReduced = runIndex(cast<xf::ContextualOpInterface>(op).getStateRun()) == 1;
  return isReduced ? Value() : argument(KernelArgKind::After, "", firstState.lookup(op));
}

Value KernelEmitter::ofRun(KernelArgKind kind, int64_t run) {
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.kind == kind && arg.run == run)
      return kernel.getArgument(i);
  llvm_unreachable("the kernel has no such run");
}

Value KernelEmitter::slots(std::optional<xf::Run> run) {
  return readTensor(builder, loc, ofRun(KernelArgKind::Slots, runIndex(run)));
}

Value KernelEmitter::visible(std::optional<xf::Run> run) {
  return memref::DimOp::create(builder, loc, ofRun(KernelArgKind::Slots, runIndex(run)), 0);
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> KernelEmitter::run() {
  addArguments();
  SmallVector<Type> types;
  for (const KernelArg &arg : args)
    types.push_back(arg.type);
  types.push_back(LLVM::LLVMPointerType::get(builder.getContext()));
  builder.setInsertionPointToEnd(module.getBody());
  kernel = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  kernel.setPrivate();
  for (auto [i, arg] : llvm::enumerate(args)) {
    auto role =
        kernel::ArgAttr::get(builder.getContext(), arg.kind,
                             arg.name.empty() ? StringAttr() : builder.getStringAttr(arg.name),
                             arg.index, kernel::Run(arg.run), arg.stored);
    kernel.setArgAttr(i, kernel::KernelDialect::ArgAttrHelper::getNameStr(), role);
  }
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  rowCount = memref::DimOp::create(builder, loc, entry->getArgument(0), 0);
  positionTensor = readTensor(builder, loc, entry->getArgument(0));
  tokenTensor = readTensor(builder, loc, entry->getArgument(1));
  for (auto [i, input] : llvm::enumerate(block.getArguments()))
    bind(input, readTensor(builder, loc, argument(KernelArgKind::Input, "", i)));

  for (Operation &op : block.getBody().front()) {
    loc = op.getLoc();
    if (auto yield = dyn_cast<xf::YieldOp>(op)) {
      for (auto [i, value] : llvm::enumerate(yield.getValues()))
        store(data(value), argument(KernelArgKind::Output, "", i));
      continue;
    }
    auto lowering = dyn_cast<LinalgLoweringOpInterface>(op);
    if (!lowering) {
      kernel.erase();
      return op.emitOpError("has no compiled kernel; the reference engine runs it");
    }
    if (failed(lowering.lowerToLinalg(*this))) {
      kernel.erase();
      return failure();
    }
  }
  emitReplayPrediction(*this);
  func::ReturnOp::create(builder, loc);
  return kernel;
}

FailureOr<func::FuncOp> ctxc::lowerBlockToLinalg(xf::BlockOp block, ModuleOp module, StringRef name,
                                                 StateLayout layout) {
  return KernelEmitter(block, module, name, layout).run();
}

namespace {

struct BlocksToLinalg : ctxc::impl::BlocksToLinalgBase<BlocksToLinalg> {
  using Base::Base;
  void runOnOperation() override {
    const StateLayout layout = byGroup ? StateLayout::ByGroup : StateLayout::ByToken;
    ModuleOp module = getOperation();
    for (auto model : llvm::to_vector(module.getOps<xf::ModelOp>()))
      model.erase();
    for (auto block : llvm::to_vector(module.getOps<xf::BlockOp>())) {
      std::string name = block.getSymName().str();
      block.setSymName(name + ".block");
      if (failed(lowerBlockToLinalg(block, module, name, layout)))
        return signalPassFailure();
      block.erase();
    }
  }
};

} // namespace
