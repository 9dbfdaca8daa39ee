// From kernels in linalg to launches of functions in a gpu.module.
#include "ctxc/Lowering/Passes.h"
#include "lib/Lowering/GPU/Cost.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "lib/Lowering/GPU/TileContraction.h"
#include "lib/Lowering/Order.h"
#include "lib/Lowering/RunPipeline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace ctxc {
#define GEN_PASS_DEF_GPUFIXROWS
#define GEN_PASS_DEF_GPULAUNCHES
#define GEN_PASS_DEF_GPUNUMBERREADS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

static constexpr StringLiteral moduleName = "kernels";

namespace {

/// Builds the function of launches that replaces a kernel. Its arguments are the kernel's, then
/// %visible, %capacity0, %capacity1.
class LaunchWriter {
public:
  LaunchWriter(func::FuncOp kernel, gpu::GPUModuleOp module)
      : kernel(kernel), module(module), b(kernel.getContext()), loc(kernel.getLoc()) {
    b.setInsertionPoint(kernel);
    Block &from = kernel.getBody().front();
    SmallVector<Type> types;
    for (BlockArgument argument : from.getArguments())
      if (isa<MemRefType>(argument.getType()))
        types.push_back(argument.getType());
    int64_t own = types.size();
    types.append({MemRefType::get({2}, b.getI32Type()), b.getIndexType(), b.getIndexType()});
    launches = func::FuncOp::create(b, loc, kernel.getName(), b.getFunctionType(types, {}));
    launches.setPrivate();
    Block *entry = launches.addEntryBlock();
    for (int64_t i = 0; i < own; ++i) {
      launches.setArgAttrs(i, kernel.getArgAttrDict(i));
      memory[from.getArgument(i)] = entry->getArgument(i);
    }
    visible = entry->getArgument(own);
    for (int64_t run : {0, 1})
      capacity[run] = entry->getArgument(own + 1 + run);
    b.setInsertionPointToStart(entry);
    one = arith::ConstantIndexOp::create(b, loc, 1);
  }

  void launch(WrittenKernel written, const std::optional<GpuCost> &cost) {
    SmallVector<Value> operands;
    for (auto [root, type] : llvm::zip(written.roots, written.function.getArgumentTypes())) {
      Value from = root ? memoryOf(root) : visible;
      if (from.getType() != type)
        from = UnrealizedConversionCastOp::create(b, loc, type, from).getResult(0);
      operands.push_back(from);
    }
    auto symbol = SymbolRefAttr::get(module.getSymNameAttr(),
                                     {FlatSymbolRefAttr::get(written.function.getNameAttr())});
    Value blocks = arith::ConstantIndexOp::create(b, loc, written.blocks);
    Value threads = arith::ConstantIndexOp::create(b, loc, written.threads);
    auto launch = gpu::LaunchFuncOp::create(b, loc, symbol, gpu::KernelDim3{blocks, one, one},
                                            gpu::KernelDim3{threads, one, one}, Value(), operands);
    if (cost)
      setCost(launch, *cost);
  }

  void finish() {
    func::ReturnOp::create(b, loc);
    kernel.erase();
  }

private:
  Value memoryOf(Value root) {
    if (auto matrix = quantizedOf(root))
      root = matrix.getMemory();
    Value &known = memory[root];
    if (!known) {
      auto type = cast<MemRefType>(root.getType());
      Extent elements = *elementsOf(root);
      if (elements.isFixed()) {
        type = MemRefType::get({elements.fixed}, type.getElementType());
        known = memref::AllocOp::create(b, loc, type);
      } else {
        type = MemRefType::get({ShapedType::kDynamic}, type.getElementType());
        known = memref::AllocOp::create(b, loc, type, ValueRange{number(elements)});
      }
    }
    return known;
  }
  Value number(const Extent &extent) {
    Value sum = arith::ConstantIndexOp::create(b, loc, extent.fixed);
    for (int64_t run : {0, 1})
      if (extent.visible[run]) {
        Value factor = arith::ConstantIndexOp::create(b, loc, extent.visible[run]);
        sum = arith::AddIOp::create(b, loc, sum,
                                    arith::MulIOp::create(b, loc, capacity[run], factor));
      }
    return sum;
  }

  func::FuncOp kernel, launches;
  gpu::GPUModuleOp module;
  OpBuilder b;
  Location loc;
  llvm::DenseMap<Value, Value> memory;
  Value visible, capacity[2], one;
};

} // namespace

/// Makes `argument` the bytes of a bank of quantised experts, and gives its users their numbers.
static void ofBytes(OpBuilder &b, BlockArgument argument, RankedTensorType bank) {
  auto stored = RankedTensorType::get({bank.getDimSize(0) * bank.getDimSize(1), bank.getDimSize(2)},
                                      bank.getElementType());
  argument.setType(MemRefType::get({xf::QuantizedType::deviceBytesOf(bank)}, b.getI8Type()));
  auto numbers = kernel::QuantizedOp::create(b, argument.getLoc(),
                                             MemRefType::get(stored.getShape(), b.getF32Type()),
                                             argument, TypeAttr::get(stored));
  auto matrices = memref::ExpandShapeOp::create(b, argument.getLoc(), bank.getShape(), numbers,
                                                SmallVector<ReassociationIndices>{{0, 1}, {2}});
  argument.replaceAllUsesExcept(matrices, numbers);
}

/// Gives a kernel its fixed number of rows. A bank becomes one buffer instead of a table of
/// addresses, except one of quantised experts that has no GPU kernel.
static void ofRows(func::FuncOp kernel, int64_t rows) {
  OpBuilder b(kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  SmallVector<Type> types;
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    kernel::ArgAttr role = kernel::roleOf(argument);
    bool grows = role && role.isOfVisible();
    if (type && type.getRank() && type.isDynamicDim(0) && !grows) {
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = rows;
      argument.setType(MemRefType::get(shape, type.getElementType()));
      auto anyRows = memref::CastOp::create(b, kernel.getLoc(), type, argument);
      argument.replaceAllUsesExcept(anyRows, anyRows);
    }
    if (role && role.getKind() == KernelArgKind::Param && role.getStored())
      argument.setType(
          MemRefType::get({xf::QuantizedType::deviceBytesOf(role.getStored())}, b.getI8Type()));
    RankedTensorType bank =
        role && role.getKind() == KernelArgKind::Bank ? role.getStored() : nullptr;
    auto quantized = bank ? dyn_cast<xf::QuantizedType>(bank.getElementType()) : nullptr;
    if (quantized && bank.getShape().back() % quantized.getDeviceBlockElements() == 0)
      ofBytes(b, argument, bank);
    else if (bank && !quantized)
      argument.setType(MemRefType::get(bank.getShape(), bank.getElementType()));
    types.push_back(argument.getType());
  }
  kernel.setFunctionType(b.getFunctionType(types, {}));
}

static std::string functionName(func::FuncOp kernel, const Step &step, size_t index) {
  static constexpr StringRef kinds[] = {"contract", "tiles", "attention", "rows", "points"};
  return (kernel.getName() + "_" + Twine(index) + "_" + kinds[step.kind]).str();
}

namespace {

struct GpuFixRows : ctxc::impl::GpuFixRowsBase<GpuFixRows> {
  using Base::Base;
  void runOnOperation() override {
    for (func::FuncOp kernel : kernelFunctions(getOperation()))
      ofRows(kernel, rows);
  }
};

/// Once sizes are known, two reads of a tensor (KernelEmitter::read) would be identical ops and
/// would be merged, although ops between them may write to the tensor's memory. A number on each
/// read keeps them apart.
struct GpuNumberReads : ctxc::impl::GpuNumberReadsBase<GpuNumberReads> {
  void runOnOperation() override {
    int64_t next = 0;
    getOperation().walk([&](bufferization::ToBufferOp read) {
      kernel::KernelDialect::ReadAttrHelper(&getContext())
          .setAttr(read, Builder(&getContext()).getI64IntegerAttr(next++));
    });
  }
};

struct GpuLaunches : ctxc::impl::GpuLaunchesBase<GpuLaunches> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    auto named = GpuTarget::named(target);
    if (!named)
      return emitError(UnknownLoc::get(context), "ctxc-gpu-launches: target: ")
             << llvm::toString(named.takeError());
    gpu = std::move(*named);
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectBuffers(module, getArgument())))
      return signalPassFailure();
    SmallVector<func::FuncOp> kernels = kernelFunctions(module);
    OpBuilder b(&getContext());
    b.setInsertionPointToEnd(module.getBody());
    auto gpuModule = gpu::GPUModuleOp::create(b, module.getLoc(), moduleName);
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), b.getUnitAttr());
    for (func::FuncOp kernel : kernels)
      launch(kernel, gpuModule);
  }

  void launch(func::FuncOp kernel, gpu::GPUModuleOp gpuModule) {
    std::string reason;
    auto steps = stepsOf(kernel, *gpu, rows, reason);
    if (failed(steps)) {
      if (refusals)
        refusals->push_back({kernel.getName().str(), reason});
      return kernel.erase();
    }
    LaunchWriter launches(kernel, gpuModule);
    for (auto [i, step] : llvm::enumerate(*steps)) {
      std::string name = functionName(kernel, step, i);
      if (step.kind == Step::Attention) {
        auto [parts, join, between] = writeAttention(gpuModule, name, step, *gpu);
        GpuCost joining;
        joining.activations = fixedExtent(between);
        std::optional<GpuCost> cost = costOf(step);
        if (cost)
          cost->activations = cost->activations + joining.activations;
        launches.launch(parts, cost);
        launches.launch(join, joining);
        continue;
      }
      auto write = step.kind == Step::Contraction ? writeContraction
                   : step.kind == Step::Tiles     ? writeTiles
                                                  : writeRows;
      launches.launch(write(gpuModule, name, step, *gpu), costOf(step));
    }
    launches.finish();
  }

  std::vector<GpuRefusal> *refusals = nullptr;
  std::shared_ptr<const GpuTarget> gpu;
};

} // namespace

std::string ctxc::obstacleToGpu(xf::BlockOp block) {
  for (Operation &op : block.getBody().getOps())
    if (auto contextual = dyn_cast<xf::ContextualOpInterface>(op))
      if (contextual.getCarried() || contextual.getReach())
        return ("'" + op.getName().getStringRef() + "' has no GPU kernel").str();
  return "";
}

void ctxc::buildGpuPipeline(OpPassManager &pm, const GpuTarget &target, int64_t rows,
                            std::vector<GpuRefusal> *refusals) {
  if (rows > 1)
    pm.addPass(createGpuExpandAttention());
  pm.addPass(createGpuFixRows({rows}));
  pm.addPass(memref::createResolveShapedTypeResultDimsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createGpuNumberReads());
  buildBufferizePipeline(pm);
  auto launches = std::make_unique<GpuLaunches>(GpuLaunchesOptions{target.name(), rows});
  launches->refusals = refusals;
  pm.addPass(std::move(launches));
  pm.addNestedPass<gpu::GPUModuleOp>(createGpuExpandRotations());
  pm.addPass(createApproximateFunctions());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
}

FailureOr<std::vector<GpuRefusal>> ctxc::lowerKernelsToGPU(ModuleOp module, const GpuTarget &target,
                                                           int64_t rows) {
  std::vector<GpuRefusal> refusals;
  if (failed(runPipeline(
          module, [&](OpPassManager &pm) { buildGpuPipeline(pm, target, rows, &refusals); })))
    return failure();
  return refusals;
}

//===----------------------------------------------------------------------===//
// Launches, read back
//===----------------------------------------------------------------------===//

static Extent bytesOf(memref::AllocOp alloc) {
  auto type = alloc.getType();
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (type.hasStaticShape())
    return fixedExtent(type.getNumElements() * bytes);
  auto function = alloc->getParentOfType<func::FuncOp>();
  unsigned last = function.getNumArguments() - 1;
  auto evaluate = [&](auto &self, Value value) -> Extent {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Extent capacity;
      capacity.visible[argument.getArgNumber() == last] = 1;
      return capacity;
    }
    if (auto number = getConstantIntValue(value))
      return fixedExtent(*number);
    Operation *op = value.getDefiningOp();
    Extent a = self(self, op->getOperand(0)), c = self(self, op->getOperand(1));
    return isa<arith::MulIOp>(op) ? *product(a, c) : a + c;
  };
  return evaluate(evaluate, alloc.getDynamicSizes()[0]) * bytes;
}

std::vector<GpuKernel> ctxc::gpuKernels(ModuleOp module) {
  std::vector<GpuKernel> kernels;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto positions = cast<MemRefType>(function.getArgumentTypes().front());
    GpuKernel kernel{
        function.getName().str(), positions.getDimSize(0), kernelArguments(function), {}, {}};
    int64_t own = kernel.args.size();
    llvm::DenseMap<Value, GpuBuffer> buffers;
    for (int64_t i = 0; i < own; ++i)
      buffers[function.getArgument(i)] = {GpuBuffer::Argument, i};
    buffers[function.getArgument(own)] = {GpuBuffer::Visible, 0};
    function.walk([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
        buffers[alloc] = {GpuBuffer::Temporary, int64_t(kernel.temporaries.size())};
        kernel.temporaries.push_back(bytesOf(alloc));
      } else if (isa<UnrealizedConversionCastOp>(op)) {
        buffers[op->getResult(0)] = buffers.lookup(op->getOperand(0));
      } else if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
        GpuLaunch made{launch.getKernelName().str(),
                       *getConstantIntValue(launch.getGridSizeX()),
                       *getConstantIntValue(launch.getBlockSizeX()),
                       {},
                       getCost(launch)};
        for (Value operand : launch.getKernelOperands())
          made.buffers.push_back(buffers.lookup(operand));
        kernel.launches.push_back(std::move(made));
      }
    });
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}
