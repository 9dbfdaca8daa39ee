// NVIDIA: gpu → nvvm → PTX, in this process and without NVIDIA's toolkit. The driver compiles PTX
// to machine code for the device.
#include "ctxc/Support/Error.h"
#include "lib/Lowering/GPU/LlvmKernels.h"
#include "lib/Lowering/GPU/Targets.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

struct CudaArchitecture {
  StringRef name, features; ///< LLVM's names, and the PTX version that every driver for it reads
};
constexpr CudaArchitecture cudaArchitectures[] = {{"sm_80", "+ptx70"}, {"sm_90", "+ptx78"}};

class NvvmKernels : public LlvmKernels {
  void configure(LLVMTypeConverter &converter) const override {
    configureGpuToNVVMTypeConverter(converter);
    converter.addConversion([](nvgpu::DeviceAsyncTokenType type) -> Type {
      return IntegerType::get(type.getContext(), 32);
    });
  }
  void populate(const LLVMTypeConverter &converter, RewritePatternSet &patterns) const override {
    populateGpuToNVVMConversionPatterns(converter, patterns);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
  }
  /// Asks for only one block on a multiprocessor at a time, if the kernel does not ask for more.
  /// Otherwise the assembler would rather spill registers than allow fewer blocks than the number
  /// of threads permits.
  void finish(LLVM::LLVMFuncOp kernel) const override {
    StringRef name = NVVM::NVVMDialect::getMinctasmAttrName();
    if (!kernel->hasAttr(name))
      kernel->setAttr(name, Builder(kernel.getContext()).getI32IntegerAttr(1));
  }
};

class CudaTarget : public GpuTarget {
public:
  explicit CudaTarget(const CudaArchitecture &architecture) : architecture(architecture) {}

  std::string name() const override { return ("cuda:" + architecture.name).str(); }
  StringRef stage() const override { return "ptx"; }
  int64_t subgroup() const override { return 32; }
  int64_t promptRows() const override { return 256; }
  bool readsFloat16() const override { return true; }
  int64_t sharedBytes() const override { return 49152; }
  bool multipliesBfloat16() const override { return true; }
  bool fusesMultiplyAdd() const override { return true; }
  void limitRegisters(Operation *kernel, int64_t blocks) const override {
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    Builder(kernel->getContext()).getI32IntegerAttr(blocks));
  }
  bool selectsBytes() const override { return true; }
  Value selectBytes(OpBuilder &b, Location loc, Value low, Value high,
                    Value selector) const override {
    return NVVM::PermuteOp::create(b, loc, b.getI32Type(), low, high, selector,
                                   NVVM::PermuteMode::DEFAULT);
  }
  llvm::Expected<std::string> emit(ModuleOp module) const override {
    MachineName machine = {"NVPTX", "nvptx64-nvidia-cuda", architecture.name,
                           architecture.features};
    return kernels.emit(module, machine, *this, llvm::CodeGenFileType::AssemblyFile);
  }
  void addCodePasses(OpPassManager &pm) const override { kernels.addPasses(pm, *this); }
  const LlvmKernels *llvmKernels() const override { return &kernels; }

private:
  NvvmKernels kernels;
  CudaArchitecture architecture;
};

} // namespace

llvm::Expected<std::unique_ptr<GpuTarget>> gpu_lowering::makeCudaTarget(StringRef name) {
  for (const CudaArchitecture &architecture : cudaArchitectures)
    if (architecture.name == name)
      return std::make_unique<CudaTarget>(architecture);
  return makeError("cuda: found '" + name + "', expected sm_80 or sm_90");
}
