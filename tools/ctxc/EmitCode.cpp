#include "EmitCode.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Error writeOutput(StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (path == "-") {
    print(llvm::outs());
    return Error::success();
  }
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    print(os);
    return Error::success();
  });
}

static std::string besides(StringRef path, StringRef extension) {
  llvm::SmallString<256> other(path);
  llvm::sys::path::replace_extension(other, extension);
  return std::string(other);
}

static Error writeInterface(const LibraryInterface &library, StringRef path) {
  if (Error error = writeOutput(besides(path, ".h"),
                                [&](llvm::raw_ostream &os) { writeKernelHeader(library, os); }))
    return error;
  return writeOutput(besides(path, ".json"),
                     [&](llvm::raw_ostream &os) { writeKernelManifest(library, os); });
}

/// What kernels call of ours, among the libraries of the installed or the built ctxc.
static std::string numericsArchive() {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<256> archive(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(archive, "..", CTXC_NUMERICS_ARCHIVE);
  return std::string(archive);
}

/// Links `object` and what kernels call of ours into `library`, which programs find as `name`.
static Error linkShared(StringRef object, StringRef library, StringRef name) {
  std::string soname = ("-Wl,-soname," + llvm::sys::path::filename(name)).str();
  for (const char *program : {"c++", "clang++", "clang++-22", "g++"}) {
    llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName(program);
    if (!linker)
      continue;
    std::string message;
    int code = llvm::sys::ExecuteAndWait(
        *linker,
        {*linker, "-shared", "-o", library, object, numericsArchive(),
         "-Wl,-z,defs,-z,relro,-z,now", "-Wl,--exclude-libs,ALL", "-Wl,--as-needed", "-lm", soname},
        std::nullopt, {}, 0, 0, &message);
    if (code == 0)
      return Error::success();
    return makeError(library + ": " + *linker + " could not link it" +
                     (message.empty() ? "" : ": " + message));
  }
  return makeError(library + ": linking needs c++, clang++ or g++, and none is in PATH; --emit=obj "
                             "needs none");
}

static Error writeMachineCode(llvm::Module &code, const CpuTarget &target, StringRef stage,
                              StringRef path) {
  auto write = [&](StringRef to, llvm::CodeGenFileType type) {
    if (to != "-")
      return writeFileAtomically(
          to, [&](llvm::raw_pwrite_stream &os) { return emitMachineCode(code, target, type, os); });
    llvm::SmallVector<char, 0> text;
    llvm::raw_svector_ostream os(text);
    Error error = emitMachineCode(code, target, type, os);
    llvm::outs() << os.str();
    return error;
  };
  if (stage == "asm")
    return write(path, llvm::CodeGenFileType::AssemblyFile);
  if (stage == "obj")
    return write(path, llvm::CodeGenFileType::ObjectFile);
  // Linked beside its place and then renamed, so that nothing half-written is left.
  std::string object = (path + ".tmp.o").str(), library = (path + ".tmp.so").str();
  llvm::scope_exit cleanUp([&] {
    llvm::sys::fs::remove(object);
    llvm::sys::fs::remove(library);
  });
  if (Error error = write(object, llvm::CodeGenFileType::ObjectFile))
    return error;
  if (Error error = linkShared(object, library, path))
    return error;
  if (std::error_code error = llvm::sys::fs::rename(library, path))
    return makeError(path + ": cannot be written: " + error.message());
  return Error::success();
}

Expected<CodeOptions> CodeOptions::parse(const Arguments &arguments) {
  CodeOptions options;
  options.stage = arguments.get("--emit", "");
  options.path = arguments.get("-o", "");
  options.prefix = arguments.get("--prefix", "ctxc");
  bool isName = !options.prefix.empty() && !llvm::isDigit(options.prefix[0]) &&
                llvm::all_of(options.prefix, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!isName)
    return makeError("--prefix: found '" + options.prefix +
                     "', expected a C identifier: letters, digits and _, no digit first");
  auto cost = CostOptions::parse(arguments);
  if (!cost)
    return cost.takeError();
  options.cost = *cost;
  options.roundedPrompts = arguments.has("--round-prompts");
  options.remarks = arguments.has("--remarks");
  StringRef name = arguments.get("--target", "native");
  bool isGpuStage =
      llvm::is_contained({"gpu", "cost", "ptx", "hsaco", "spirv"}, StringRef(options.stage));
  if (GpuTarget::isOne(name)) {
    auto gpu = GpuTarget::named(name);
    if (!gpu)
      return makeError("--target: " + llvm::toString(gpu.takeError()));
    if (!llvm::is_contained({"gpu", "cost", (*gpu)->stage().data()}, StringRef(options.stage)))
      return makeError("--emit: found '" + options.stage + "', expected gpu, cost or " +
                       (*gpu)->stage() + " for --target=" + name);
    options.gpu = std::move(*gpu);
    if (auto text = arguments.get("--rows"))
      if (text->getAsInteger(10, options.rows) || options.rows < 1 || options.rows > 4096)
        return makeError("--rows: found '" + *text + "', expected a number from 1 to 4096");
    if (options.roundedPrompts && !(options.rows > 1 && options.gpu->multipliesBfloat16()))
      return makeError("--round-prompts: rounds nothing in kernels of " +
                       (options.rows > 1 ? name : "one row") +
                       "; expected --rows N and a --target that has products of bfloat16: "
                       "cuda:sm_80, cuda:sm_90");
    return options;
  }
  if (arguments.has("--rows"))
    return makeError("--rows: is of kernels for GPUs; expected --target to name one");
  if (isGpuStage)
    return makeError("--emit=" + options.stage + ": --target: found '" + name +
                     "', expected a GPU: " + GpuTarget::names());
  auto target = CpuTarget::named(name);
  if (!target)
    return makeError("--target: " + llvm::toString(target.takeError()));
  options.target = std::move(*target);
  if (options.roundedPrompts && !options.target.bfloatPairs)
    return makeError("--round-prompts: '" + name +
                     "' has no instruction for pairs of bfloat16 "
                     "(avx512_bf16); expected a --target that has, such as cooperlake or znver4");
  if (options.stage == "shared" && !options.target.isOfThisArchitecture())
    return makeError("--emit=shared: this machine has no linker for " + options.target.triple +
                     "; write --emit=obj, and link it there with its libCtxcNumerics.a");
  return options;
}

/// Lowers the kernels for a GPU and writes what the stage is. Kernels that it cannot carry are left
/// out, each with a warning; where it can carry none, that is an error.
static Error emitGpuCode(const Program &program, mlir::ModuleOp kernels,
                         const CodeOptions &options) {
  auto refusals = lowerKernelsToGPU(kernels, *options.gpu, options.rows);
  if (mlir::failed(refusals))
    return makeError("kernels could not be lowered; see the messages above");
  if (gpuKernels(kernels).empty())
    return makeError(options.gpu->name() +
                     ": carries none of the model's kernels; see the messages "
                     "above");
  if (options.stage == "gpu")
    return writeOutput(options.path, [&](llvm::raw_ostream &os) { kernels.print(os); });
  if (options.stage == "cost") {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (Error error = writeCost(program, kernels, options, os))
      return error;
    return writeOutput(options.path, [&](llvm::raw_ostream &out) { out << text; });
  }
  auto code = options.gpu->emit(kernels);
  if (!code)
    return code.takeError();
  return writeOutput(options.path, [&](llvm::raw_ostream &os) { os << *code; });
}

Error driver::emitCode(const Program &given, const CodeOptions &options) {
  Program program = given;
  if (options.gpu && llvm::any_of(program.steps, [](const ProgramStep &s) { return s.dual; }))
    addDualHead(program);
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  registerGpuDialects(registry);
  mlir::MLIRContext &context = *program.module->getContext();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  if (options.remarks) {
    mlir::remark::RemarkCategories categories;
    categories.missed = "ctxc";
    if (mlir::failed(mlir::remark::enableOptimizationRemarks(
            context, /*streamer=*/nullptr,
            std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories,
            /*printAsEmitRemarks=*/true)))
      return makeError("--remarks: could not be turned on");
  }
  auto kernels = buildKernelModule(kernelBlocks(program), options.prefix);
  if (mlir::failed(kernels))
    return makeError("a block has no compiled form; see the messages above");
  if (options.roundedPrompts)
    for (xf::BlockOp block : kernelBlocks(program))
      if (readsPrompts(program, block))
        kernel::mark<kernel::Rounded>((*kernels)->lookupSymbol(kernelName(block, options.prefix)));
  if (options.stage == "linalg")
    return writeOutput(options.path, [&](llvm::raw_ostream &os) { (*kernels)->print(os); });

  if (options.gpu)
    return emitGpuCode(program, **kernels, options);

  mlir::OwningOpRef<mlir::ModuleOp> lowered((*kernels)->clone());
  if (mlir::failed(lowerKernelsToLLVM(*lowered, options.target)))
    return makeError("kernels could not be lowered; see the messages above");
  llvm::LLVMContext llvmContext;
  auto code = translateKernels(*lowered, llvmContext, options.target, options.prefix);
  if (!code)
    return code.takeError();
  if (options.stage == "llvm")
    return writeOutput(options.path, [&](llvm::raw_ostream &os) { (*code)->print(os, nullptr); });
  if (Error error = writeMachineCode(**code, options.target, options.stage, options.path))
    return error;
  if (options.stage == "asm")
    return Error::success();
  return writeInterface({**kernels, program, options.target, options.prefix}, options.path);
}
