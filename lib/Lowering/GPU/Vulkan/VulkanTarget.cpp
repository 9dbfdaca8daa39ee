// Vulkan: gpu → spirv → a binary module with one entry point for each kernel. Buffers are storage
// buffers of descriptor set 0, in the order of the kernel's arguments.
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Support/Error.h"
#include "lib/Lowering/GPU/Targets.h"
#include "lib/Lowering/RunPipeline.h"
#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRVPass.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRVPass.h"
#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRVPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace ctxc {
#define GEN_PASS_DEF_GPUPREPARESPIRV
#define GEN_PASS_DEF_SPIRVORDERBUFFERS
#include "ctxc/Lowering/Passes.h.inc"
} // namespace ctxc

namespace {

class VulkanTarget : public GpuTarget {
public:
  explicit VulkanTarget(int64_t lanes) : lanes(lanes) {}

  std::string name() const override { return "vulkan:" + std::to_string(lanes); }
  StringRef stage() const override { return "spirv"; }
  int64_t subgroup() const override { return lanes; }
  int64_t promptRows() const override { return 32; }
  bool readsFloat16() const override { return false; }
  llvm::Expected<std::string> emit(ModuleOp module) const override;
  void addCodePasses(OpPassManager &pm) const override;

private:
  int64_t lanes;
};

} // namespace

llvm::Expected<std::unique_ptr<GpuTarget>> gpu_lowering::makeVulkanTarget(StringRef text) {
  int64_t lanes = 8;
  if (!text.empty() &&
      (text.getAsInteger(10, lanes) || lanes < 4 || lanes > 128 || (lanes & (lanes - 1)) != 0))
    return makeError("vulkan: found '" + text +
                     "', expected a power of two from 4 to 128, the "
                     "lanes of a subgroup");
  return std::make_unique<VulkanTarget>(lanes);
}

static spirv::TargetEnvAttr environment(MLIRContext *context, int64_t lanes) {
  using C = spirv::Capability;
  auto triple = spirv::VerCapExtAttr::get(
      spirv::Version::V_1_3,
      {C::Shader, C::Int64, C::Float64, C::GroupNonUniform, C::GroupNonUniformShuffle},
      {spirv::Extension::SPV_KHR_storage_buffer_storage_class}, context);
  auto limits = spirv::ResourceLimitsAttr::get(
      context, /*max_compute_shared_memory_size=*/16384,
      /*max_compute_workgroup_invocations=*/512, Builder(context).getI32ArrayAttr({512, 1, 1}),
      lanes, std::nullopt, std::nullopt, ArrayAttr(), ArrayAttr());
  return spirv::TargetEnvAttr::get(triple, limits, spirv::ClientAPI::Vulkan, spirv::Vendor::Unknown,
                                   spirv::DeviceType::Unknown,
                                   spirv::TargetEnvAttr::kUnknownDeviceID);
}

/// The conversion to SPIR-V sets a loop's results at the end of each iteration, which would leave
/// the results of a loop without iterations unset.
static void setResultsOfNoStep(scf::ForOp loop) {
  auto from = getConstantIntValue(loop.getLowerBound()),
       to = getConstantIntValue(loop.getUpperBound());
  if (!loop.getNumResults() || (from && to && *from < *to))
    return;
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  Value steps = arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt,
                                      loop.getLowerBound(), loop.getUpperBound());
  for (auto [result, start] : llvm::zip(loop.getResults(), loop.getInitArgs())) {
    auto set = arith::SelectOp::create(b, loop.getLoc(), steps, result, start);
    result.replaceAllUsesExcept(set, set);
  }
}

/// Turns memory that the threads of a block share into an allocation, as the conversion to SPIR-V
/// expects, and attaches the block size as the attribute that it reads.
static void prepare(gpu::GPUModuleOp kernels) {
  MLIRContext *context = kernels.getContext();
  kernels.walk(setResultsOfNoStep);
  for (auto function : kernels.getOps<gpu::GPUFuncOp>()) {
    OpBuilder b(context);
    b.setInsertionPointToStart(&function.getBody().front());
    while (function.getNumWorkgroupAttributions()) {
      unsigned number = function.getFunctionType().getNumInputs();
      BlockArgument shared = function.getBody().front().getArgument(number);
      auto type = cast<MemRefType>(shared.getType());
      auto space = spirv::StorageClassAttr::get(context, spirv::StorageClass::Workgroup);
      auto alloc = memref::AllocOp::create(b, function.getLoc(),
                                           MemRefType::get(type.getShape(), type.getElementType(),
                                                           MemRefLayoutAttrInterface(), space));
      shared.replaceAllUsesWith(alloc);
      function.getBody().front().eraseArgument(number);
      function->setAttr(gpu::GPUFuncOp::getNumWorkgroupAttributionsAttrName().str(),
                        b.getI64IntegerAttr(function.getNumWorkgroupAttributions() - 1));
    }
    auto size = function.getKnownBlockSize();
    function->setAttr(spirv::getEntryPointABIAttrName(),
                      spirv::getEntryPointABIAttr(context, *size));
  }
}

namespace {

struct GpuPrepareSpirv : ctxc::impl::GpuPrepareSpirvBase<GpuPrepareSpirv> {
  using Base::Base;
  void runOnOperation() override {
    for (auto kernels : getOperation().getOps<gpu::GPUModuleOp>()) {
      prepare(kernels);
      kernels->setAttr(spirv::getTargetEnvAttrName(), environment(&getContext(), lanes));
    }
    // Launches are for the executor, not for the SPIR-V module.
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      function.erase();
  }
};

struct SpirvOrderBuffers : ctxc::impl::SpirvOrderBuffersBase<SpirvOrderBuffers> {
  void runOnOperation() override {
    getOperation().walk([](spirv::ControlBarrierOp barrier) {
      auto semantics = barrier.getMemorySemantics() | spirv::MemorySemantics::UniformMemory;
      barrier.setMemorySemantics(semantics);
    });
  }
};

} // namespace

void VulkanTarget::addCodePasses(OpPassManager &pm) const {
  pm.addPass(createGpuPrepareSpirv({lanes}));
  pm.addNestedPass<gpu::GPUModuleOp>(createConvertMathToSPIRVPass());
  pm.addPass(createMapMemRefStorageClassPass());
  pm.addPass(createConvertGPUToSPIRVPass());
  OpPassManager &code = pm.nest<spirv::ModuleOp>();
  code.addPass(spirv::createSPIRVLowerABIAttributesPass());
  code.addPass(spirv::createSPIRVUpdateVCEPass());
  code.addPass(createSpirvOrderBuffers());
}

llvm::Expected<std::string> VulkanTarget::emit(ModuleOp module) const {
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(runPipeline(*copy, [&](OpPassManager &pm) { addCodePasses(pm); })))
    return makeError(name() + ": the kernels could not be lowered to SPIR-V; see the messages "
                              "above");
  auto found = copy->getOps<spirv::ModuleOp>();
  if (found.empty())
    return makeError(name() + ": there is no SPIR-V module");
  SmallVector<uint32_t, 0> words;
  if (failed(spirv::serialize(*found.begin(), words)))
    return makeError(name() + ": the SPIR-V module could not be serialised");
  return std::string(reinterpret_cast<const char *>(words.data()), words.size() * 4);
}
