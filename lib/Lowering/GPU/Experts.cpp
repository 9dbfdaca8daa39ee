#include "lib/Lowering/GPU/Experts.h"
#include "ctxc/Lowering/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace ctxc {
#define GEN_PASS_DEF_GPUCALLEXPERTS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

static constexpr StringLiteral callee = "ctxc_experts", transposedAttr = "ctxc.transposed";

/// The memory in which an address that `value` is made of lies.
static Value memoryOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto pointer = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op))
    return pointer.getSource();
  for (Value operand : op->getOperands())
    if (Value found = memoryOf(operand))
      return found;
  return {};
}

/// The loops over rows and slots around the read of a table of addresses.
static std::optional<ExpertCall> readLoops(memref::LoadOp address, scf::ForOp slots) {
  auto expert = address.getIndices().front().getDefiningOp<arith::IndexCastOp>();
  auto selected = expert ? expert.getIn().getDefiningOp<memref::LoadOp>() : memref::LoadOp();
  auto found = slots.getBody()->getOps<linalg::GenericOp>();
  if (!selected || found.empty())
    return std::nullopt;
  linalg::GenericOp contraction = *found.begin();
  Value x = memoryOf(contraction.getDpsInputs()[1]), y = memoryOf(contraction.getDpsInits()[0]);
  if (!x || !y)
    return std::nullopt;
  bool transposed = !contraction.getMatchingIndexingMap(contraction.getDpsInputOperand(0))
                         .getResult(0)
                         .isFunctionOfDim(1);
  return ExpertCall{address.getMemRef(), x, selected.getMemRef(), y, transposed};
}

static void replace(scf::ForOp rows, const ExpertCall &found, int64_t number) {
  auto module = rows->getParentOfType<ModuleOp>();
  SmallVector<Value> operands{found.bank, found.x, found.selected, found.y};
  OpBuilder b(module.getContext()); // detached until its name is the only one
  auto declared = func::FuncOp::create(b, rows.getLoc(), (callee + Twine(number)).str(),
                                       b.getFunctionType(TypeRange(ValueRange(operands)), {}));
  declared.setPrivate();
  SymbolTable(module).insert(declared);
  b.setInsertionPoint(rows);
  auto call = func::CallOp::create(b, rows.getLoc(), declared, operands);
  if (found.transposed)
    call->setAttr(transposedAttr, b.getUnitAttr());
  rows.erase();
}

static void replaceExperts(func::FuncOp kernel) {
  int64_t number = 0;
  for (BlockArgument table : kernel.getArguments()) {
    kernel::ArgAttr role = kernel::roleOf(table);
    if (!role || role.getKind() != KernelArgKind::Bank ||
        !isa<FloatType>(role.getStored().getElementType()))
      continue;
    RankedTensorType type = role.getStored();
    SmallVector<std::pair<scf::ForOp, ExpertCall>> loops;
    for (Operation *user : table.getUsers()) {
      auto slots = dyn_cast<scf::ForOp>(user->getParentOp());
      auto rows = slots ? dyn_cast<scf::ForOp>(slots->getParentOp()) : scf::ForOp();
      auto found = rows && isa<memref::LoadOp>(user) ? readLoops(cast<memref::LoadOp>(user), slots)
                                                     : std::nullopt;
      if (!found)
        break;
      loops.push_back({rows, *found});
    }
    if (loops.size() != size_t(std::distance(table.use_begin(), table.use_end())))
      continue;
    table.setType(MemRefType::get(type.getShape(), type.getElementType()));
    for (auto &[rows, found] : loops)
      replace(rows, found, number++);
  }
  SmallVector<Type> types = llvm::to_vector(kernel.getBody().getArgumentTypes());
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
}

namespace {

struct GpuCallExperts : ctxc::impl::GpuCallExpertsBase<GpuCallExperts> {
  void runOnOperation() override {
    llvm::for_each(kernelFunctions(getOperation()), replaceExperts);
  }
};

} // namespace

std::optional<ExpertCall> gpu_lowering::expertCall(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call || !call.getCallee().starts_with(callee))
    return std::nullopt;
  return ExpertCall{call.getOperand(0), call.getOperand(1), call.getOperand(2), call.getOperand(3),
                    call->hasAttr(transposedAttr)};
}
