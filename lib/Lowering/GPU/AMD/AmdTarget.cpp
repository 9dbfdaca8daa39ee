// AMD: gpu → rocdl → an object file → a code object, which is a shared object that lld links.
// Everything happens in this process, and no device library is called.
#include "ctxc/Support/Error.h"
#include "lib/Lowering/GPU/AMD/LinkCodeObject.h"
#include "lib/Lowering/GPU/LlvmKernels.h"
#include "lib/Lowering/GPU/Targets.h"
#include "mlir/Conversion/AMDGPUToROCDL/AMDGPUToROCDL.h"
#include "mlir/Conversion/GPUToROCDL/GPUToROCDLPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

struct AmdArchitecture {
  StringRef name;
  int64_t subgroup; ///< lanes of a wavefront, as compilers for this architecture set it
  StringRef features;
};
constexpr AmdArchitecture amdArchitectures[] = {{"gfx90a", 64, "+wavefrontsize64"},
                                                {"gfx942", 64, "+wavefrontsize64"},
                                                {"gfx1100", 32, "+wavefrontsize32"}};

class RocdlKernels : public LlvmKernels {
public:
  explicit RocdlKernels(StringRef architecture) : architecture(architecture) {}

private:
  void configure(LLVMTypeConverter &converter) const override {
    amdgpu::populateCommonGPUTypeAndAttributeConversions(converter);
  }
  void populate(const LLVMTypeConverter &converter, RewritePatternSet &patterns) const override {
    populateGpuToROCDLConversionPatterns(converter, patterns, gpu::amd::Runtime::HIP,
                                         *amdgpu::Chipset::parse(architecture));
  }
  /// Two attributes state the size of a block; this sets the second from the first.
  void finish(LLVM::LLVMFuncOp kernel) const override {
    auto *dialect = kernel.getContext()->getLoadedDialect<ROCDL::ROCDLDialect>();
    auto size = dialect->getReqdWorkGroupSizeAttrHelper().getAttr(kernel);
    if (!size)
      return;
    int64_t threads = 1;
    for (int32_t each : size.asArrayRef())
      threads *= each;
    std::string range = std::to_string(threads) + "," + std::to_string(threads);
    dialect->getFlatWorkGroupSizeAttrHelper().setAttr(kernel,
                                                      StringAttr::get(kernel.getContext(), range));
  }

  /// The version of code objects that all drivers since ROCm 5 read.
  void finish(llvm::Module &code) const override {
    code.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
  }

  StringRef architecture;
};

class AmdTarget : public GpuTarget {
public:
  explicit AmdTarget(const AmdArchitecture &architecture)
      : kernels(architecture.name), architecture(architecture) {}

  std::string name() const override { return ("rocm:" + architecture.name).str(); }
  StringRef stage() const override { return "hsaco"; }
  int64_t subgroup() const override { return architecture.subgroup; }
  int64_t promptRows() const override { return 256; }
  bool readsFloat16() const override { return true; }
  bool fusesMultiplyAdd() const override { return true; }
  int64_t sharedBytes() const override { return 65536; }
  llvm::Expected<std::string> emit(ModuleOp module) const override {
    MachineName machine = {"AMDGPU", "amdgcn-amd-amdhsa", architecture.name, architecture.features};
    auto object = kernels.emit(module, machine, *this, llvm::CodeGenFileType::ObjectFile);
    return object ? linkCodeObject(*object, name()) : object.takeError();
  }
  void addCodePasses(OpPassManager &pm) const override { kernels.addPasses(pm, *this); }
  const LlvmKernels *llvmKernels() const override { return &kernels; }

private:
  RocdlKernels kernels;
  AmdArchitecture architecture;
};

} // namespace

llvm::Expected<std::unique_ptr<GpuTarget>> gpu_lowering::makeAmdTarget(StringRef name) {
  for (const AmdArchitecture &architecture : amdArchitectures)
    if (architecture.name == name)
      return std::make_unique<AmdTarget>(architecture);
  return makeError("rocm: found '" + name + "', expected gfx90a, gfx942 or gfx1100");
}
