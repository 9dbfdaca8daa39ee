#include "lib/Runtime/Tune/LinearKernel.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/ParallelFor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ctxc;

constexpr auto blockText = R"(
xf.block @linear(%x: tensor<{1}xf32>) -> (tensor<{0}xf32>) {{
  %w = xf.param "w" : tensor<{0}x{1}x{2}>
  %y = xf.linear %w * %x : tensor<{0}x{1}x{2}>, tensor<{1}xf32>
  xf.yield %y : tensor<{0}xf32>
})";

llvm::Expected<std::unique_ptr<LinearKernel>> LinearKernel::compile(int64_t outputs, int64_t inputs,
                                                                    llvm::StringRef element,
                                                                    PromptProducts prompts,
                                                                    const CpuTarget &target) {
  std::unique_ptr<LinearKernel> result(new LinearKernel);
  DialectRegistry registry;
  registerCodegenDialects(registry);
  result->context.appendDialectRegistry(registry);
  result->context.loadAllAvailableDialects();
  std::string text = llvm::formatv(blockText, outputs, inputs, element).str();
  auto source = parseSourceString<ModuleOp>(text, &result->context);
  if (!source)
    return makeError("the block of one linear layer does not parse");
  xf::BlockOp block = *source->getOps<xf::BlockOp>().begin();
  FailureOr<OwningOpRef<ModuleOp>> module = buildKernelModule(block);
  if (failed(module))
    return makeError("the block of one linear layer has no kernel");
  std::string name = kernelName(block);
  auto function = (*module)->lookupSymbol<func::FuncOp>(name);
  result->arguments = kernelArguments(function);
  markProducts(function, prompts);

  auto objects = compileKernels({**module}, target);
  if (!objects)
    return objects.takeError();
  auto library = KernelLibrary::load(std::move(*objects));
  if (!library)
    return library.takeError();
  result->library = std::move(*library);
  auto kernel = result->library->kernel(name);
  if (!kernel)
    return kernel.takeError();
  result->kernel = *kernel;
  auto workspace = result->library->workspace(name);
  if (!workspace)
    return workspace.takeError();
  result->workspaceOf = *workspace;
  return result;
}

void LinearKernel::run(const void *weight, const float *x, float *y, int64_t rows, int threads) {
  positions.resize(rows);
  llvm::SmallVector<void *> pointers;
  for (const KernelArg &arg : arguments)
    pointers.push_back(arg.kind == KernelArgKind::Param    ? const_cast<void *>(weight)
                       : arg.kind == KernelArgKind::Input  ? const_cast<float *>(x)
                       : arg.kind == KernelArgKind::Output ? static_cast<void *>(y)
                                                           : positions.data());
  ctxc_call call = {rows,        {0, 0},  pointers.data(), workspace.take(workspaceOf(rows, 0, 0)),
                    parallelFor, &threads};
  kernel(&call);
}
