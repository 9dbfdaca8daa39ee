// Kernels of the model's program, as code.
#include "ctxc/Session/Compile.h"
#include "Use.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

static bool isOfGpu(CodeStage stage) {
  return stage == CodeStage::Gpu || stage == CodeStage::GpuCode;
}

Error ctxc::checkCompileOptions(const CompileOptions &options) {
  auto refuse = [](Option option, const llvm::Twine &problem) {
    return llvm::make_error<OptionError>(option, problem);
  };
  llvm::StringRef prefix = options.prefix;
  if (prefix.empty() || llvm::isDigit(prefix[0]) ||
      !llvm::all_of(prefix, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return refuse(Option::Prefix, "found '" + prefix +
                                      "', expected a C identifier: letters, digits and _, no "
                                      "digit first");
  if (options.rows < 1 || options.rows > 4096)
    return refuse(Option::Rows,
                  "found '" + llvm::Twine(options.rows) + "', expected a number from 1 to 4096");
  if (isOfGpu(options.stage) != bool(options.gpu))
    return refuse(Option::CompileTarget,
                  options.gpu ? "found '" + options.gpu->name() + "', expected a processor"
                              : "expected a GPU: " + GpuTarget::names());
  if (!options.gpu && options.rows > 1)
    return refuse(Option::Rows, "applies to kernels for GPUs");
  if (options.prompts == PromptProducts::Exact)
    return Error::success();
  if (options.prompts == PromptProducts::Split) {
    if (options.gpu)
      return refuse(Option::SplitPrompts, "is for kernels of a processor; leave it out");
    if (options.processor && !options.processor->tiles)
      return refuse(Option::SplitPrompts,
                    "'" + options.processor->cpu +
                        "' has no tile registers for bfloat16 (amx_bf16); expected a target that "
                        "has, such as sapphirerapids");
    return Error::success();
  }
  if (options.gpu && !(options.rows > 1 && options.gpu->multipliesBfloat16()))
    return refuse(Option::RoundedPrompts,
                  "rounds nothing in kernels of " +
                      (options.rows > 1 ? options.gpu->name() : std::string("one row")) +
                      "; expected more rows and a target that has products of bfloat16: "
                      "cuda:sm_80, cuda:sm_90");
  if (options.processor && !options.processor->bfloatPairs)
    return refuse(
        Option::RoundedPrompts,
        "'" + options.processor->cpu +
            "' has no instruction for pairs of bfloat16 (avx512_bf16, or bf16 of AArch64); "
            "expected a target that has, such as cooperlake, znver4 or aarch64+bf16");
  return Error::success();
}

template <typename Print> static std::string printed(Print print) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

/// Kernels for the GPU, as launches. Those that it cannot carry are left out, each with a warning;
/// where it can carry none, that is an error.
static Error lowerToGpu(mlir::ModuleOp kernels, const GpuTarget &gpu, int64_t rows) {
  if (mlir::failed(lowerKernelsToGPU(kernels, gpu, rows)))
    return makeError("kernels could not be lowered; see the messages above");
  if (gpuKernels(kernels).empty())
    return makeError(gpu.name() + ": carries none of the model's kernels; see the messages above");
  return Error::success();
}

/// Kernels for the processor, in the stage that the options name.
static Expected<CompiledCode> compileForProcessor(mlir::ModuleOp kernels, const Program &program,
                                                  const CpuTarget &target,
                                                  const CompileOptions &options) {
  mlir::OwningOpRef<mlir::ModuleOp> lowered(kernels.clone());
  if (mlir::failed(lowerKernelsToLLVM(*lowered, target)))
    return makeError("kernels could not be lowered; see the messages above");
  llvm::LLVMContext llvmContext;
  auto code = translateKernels(*lowered, llvmContext, target, options.prefix);
  if (!code)
    return code.takeError();
  CompiledCode made;
  if (options.stage == CodeStage::LLVM) {
    made.code = printed([&](llvm::raw_ostream &os) { (*code)->print(os, nullptr); });
    return made;
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  auto type = options.stage == CodeStage::Assembly ? llvm::CodeGenFileType::AssemblyFile
                                                   : llvm::CodeGenFileType::ObjectFile;
  if (Error error = emitMachineCode(**code, target, type, os))
    return std::move(error);
  made.code.assign(bytes.begin(), bytes.end());
  if (options.stage == CodeStage::Object) {
    LibraryInterface library{kernels, program, target, options.prefix};
    made.header = printed([&](llvm::raw_ostream &os) { writeKernelHeader(library, os); });
    made.manifest = printed([&](llvm::raw_ostream &os) { writeKernelManifest(library, os); });
  }
  return made;
}

/// The program that code is made of: a GPU reads the head's matrix once for both runs.
static Program programToCompile(const Program &program, const CompileOptions &options) {
  Program copy = program;
  if (options.gpu && llvm::any_of(copy.steps, [](const ProgramStep &s) { return s.dual; }))
    addDualHead(copy);
  return copy;
}

static Expected<mlir::OwningOpRef<mlir::ModuleOp>> kernelsOf(const Program &program,
                                                             const CompileOptions &options) {
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  registerGpuDialects(registry);
  mlir::MLIRContext &context = *program.module->getContext();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  for (xf::BlockOp block : kernelBlocks(program))
    if (std::string reason = options.gpu ? obstacleToGpu(block) : ""; !reason.empty())
      return makeError("block '" + block.getSymName() + "' cannot be compiled for a GPU: " +
                       reason + "; compile it for a processor");
  auto kernels = buildKernelModule(kernelBlocks(program), options.prefix);
  if (mlir::failed(kernels))
    return makeError("a block has no compiled form; see the messages above");
  for (xf::BlockOp block : kernelBlocks(program))
    if (readsPrompts(program, block))
      markProducts((*kernels)->lookupSymbol(kernelName(block, options.prefix)), options.prompts);
  return std::move(*kernels);
}

namespace {
/// Turns remarks on missed optimisations into diagnostics of `context`, until it is destroyed.
class EmitRemarks {
public:
  explicit EmitRemarks(mlir::MLIRContext &context) : context(context) {
    mlir::remark::RemarkCategories categories;
    categories.missed = "ctxc";
    (void)mlir::remark::enableOptimizationRemarks(
        context, /*streamer=*/nullptr, std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(),
        categories, /*printAsEmitRemarks=*/true);
  }
  ~EmitRemarks() { context.setRemarkEngine(nullptr); }

private:
  mlir::MLIRContext &context;
};
} // namespace

Expected<const Program &> Model::programOfSteps() {
  if (Error error = checkNumerics())
    return std::move(error);
  Expected<const Program &> program = this->program();
  if (program && program->steps.empty())
    return makeError(path + ": has blocks and no xf.model; kernels are made of models");
  if (program && !onlyJoint.empty())
    return makeError(path + ": " + onlyJoint);
  return program;
}

Expected<CompiledCode> Model::compile(const CompileOptions &options) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (Error error = checkCompileOptions(options))
    return std::move(error);
  Expected<const Program &> given = programOfSteps();
  if (!given)
    return given.takeError();
  Program program = programToCompile(*given, options);
  std::optional<EmitRemarks> remarks;
  if (options.remarks)
    remarks.emplace(*mlirContext);
  auto kernels = kernelsOf(program, options);
  if (!kernels)
    return withDiagnostics(kernels.takeError());
  auto print = [&](llvm::raw_ostream &os) { (*kernels)->print(os); };
  CompiledCode made;
  if (options.stage == CodeStage::Linalg) {
    made.code = printed(print);
    return made;
  }
  if (!options.gpu) {
    auto target = options.processor ? *options.processor : CpuTarget::named("native");
    if (!target)
      return target.takeError();
    if (options.prompts == PromptProducts::Exact) // nothing else is computed in tiles
      *target = target->withoutTiles();
    auto code = compileForProcessor(**kernels, program, *target, options);
    return code ? std::move(code) : withDiagnostics(code.takeError());
  }
  if (Error error = lowerToGpu(**kernels, *options.gpu, options.rows))
    return withDiagnostics(std::move(error));
  if (options.stage == CodeStage::Gpu) {
    made.code = printed(print);
    return made;
  }
  auto code = options.gpu->emit(**kernels);
  if (!code)
    return withDiagnostics(code.takeError());
  made.code = std::move(*code);
  return made;
}

Expected<TokenCosts> Model::cost(const CompileOptions &options, const CostOptions &at) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (Error error = checkCompileOptions(options))
    return std::move(error);
  if (!options.gpu)
    return llvm::make_error<OptionError>(Option::CompileTarget,
                                         "expected a GPU: " + GpuTarget::names());
  Expected<const Program &> given = programOfSteps();
  if (!given)
    return given.takeError();
  Program program = programToCompile(*given, options);
  auto kernels = kernelsOf(program, options);
  if (!kernels)
    return withDiagnostics(kernels.takeError());
  if (Error error = lowerToGpu(**kernels, *options.gpu, options.rows))
    return withDiagnostics(std::move(error));
  return countCosts(program, gpuKernels(**kernels), options.prefix, *options.gpu, at);
}
