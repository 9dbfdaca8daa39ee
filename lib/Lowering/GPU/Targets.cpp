#include "lib/Lowering/GPU/Targets.h"
#include "ctxc/Support/Devices.h"
#include "ctxc/Support/Error.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {
struct Entry {
  StringRef name;
  llvm::Expected<std::unique_ptr<GpuTarget>> (*make)(StringRef rest);
};
} // namespace

static constexpr Entry entries[] = {
#define CTXC_DEVICE(NAME, TEXT, EXAMPLES) {#TEXT, make##NAME##Target},
#include "ctxc/Support/Devices.def"
};

static const Entry *find(StringRef name) {
  return llvm::find_if(entries, [&](const Entry &e) { return name.split(':').first == e.name; });
}

std::string GpuTarget::names() { return anyOf(deviceExamples); }

bool GpuTarget::isOne(StringRef name) { return find(name) != std::end(entries); }

llvm::Expected<std::unique_ptr<GpuTarget>> GpuTarget::named(StringRef name) {
  const Entry *entry = find(name);
  if (entry == std::end(entries))
    return makeError("found '" + name + "', expected " + names());
  return entry->make(name.split(':').second);
}

gpu::GPUModuleOp gpu_lowering::kernelsOf(ModuleOp module) {
  return *module.getOps<gpu::GPUModuleOp>().begin();
}

void ctxc::registerGpuDialects(DialectRegistry &registry) {
  registry
      .insert<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect,
              amdgpu::AMDGPUDialect, spirv::SPIRVDialect, cf::ControlFlowDialect, math::MathDialect,
              memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registerROCDLDialectTranslation(registry);
}
