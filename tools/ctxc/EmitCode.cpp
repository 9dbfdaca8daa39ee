#include "EmitCode.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
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

static Error writeInterface(mlir::ModuleOp kernels, const CpuTarget &target, StringRef path) {
  if (Error error = writeOutput(besides(path, ".h"),
                                [&](llvm::raw_ostream &os) { writeKernelHeader(kernels, os); }))
    return error;
  return writeOutput(besides(path, ".json"),
                     [&](llvm::raw_ostream &os) { writeKernelManifest(kernels, target, os); });
}

/// What kernels call of ours: beside an installed ctxc, else where it was built.
static std::string numericsArchive() {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<256> installed(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(installed, "..", CTXC_INSTALL_LIBDIR,
                          llvm::sys::path::filename(CTXC_NUMERICS_ARCHIVE));
  return llvm::sys::fs::exists(installed) ? std::string(installed) : CTXC_NUMERICS_ARCHIVE;
}

/// Links `object` and what kernels call of ours into `library`.
static Error linkShared(StringRef object, StringRef library) {
  for (const char *name : {"c++", "clang++", "clang++-22", "g++"}) {
    llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName(name);
    if (!linker)
      continue;
    std::string message;
    int code =
        llvm::sys::ExecuteAndWait(*linker,
                                  {*linker, "-shared", "-o", library, object, numericsArchive(),
                                   "-Wl,-z,defs", "-Wl,--exclude-libs,ALL", "-lm"},
                                  std::nullopt, {}, 0, 0, &message);
    if (code == 0)
      return Error::success();
    return makeError(library + ": " + *linker + " could not link it" +
                     (message.empty() ? "" : ": " + message));
  }
  return makeError(library + ": linking needs c++, clang++ or g++, and none is in PATH; --emit=obj "
                             "needs none");
}

static Error emitMachineCode(llvm::Module &code, const CpuTarget &target, StringRef stage,
                             StringRef path) {
  auto writeObject = [&](StringRef to) {
    return writeFileAtomically(
        to, [&](llvm::raw_pwrite_stream &os) { return emitObject(code, target, os); });
  };
  if (stage == "obj")
    return writeObject(path);
  // Linked beside its place and then renamed, so that nothing half-written is left.
  std::string object = (path + ".tmp.o").str(), library = (path + ".tmp.so").str();
  llvm::scope_exit cleanUp([&] {
    llvm::sys::fs::remove(object);
    llvm::sys::fs::remove(library);
  });
  if (Error error = writeObject(object))
    return error;
  if (Error error = linkShared(object, library))
    return error;
  if (std::error_code error = llvm::sys::fs::rename(library, path))
    return makeError(path + ": cannot be written: " + error.message());
  return Error::success();
}

Error driver::emitCode(const Program &program, StringRef stage, StringRef path) {
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  mlir::MLIRContext &context = *program.module->getContext();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  auto kernels = buildKernelModule(kernelBlocks(program));
  if (mlir::failed(kernels))
    return makeError("a block has no compiled form; see the messages above");
  if (stage == "linalg")
    return writeOutput(path, [&](llvm::raw_ostream &os) { (*kernels)->print(os); });

  CpuTarget target = CpuTarget::host();
  mlir::OwningOpRef<mlir::ModuleOp> lowered((*kernels)->clone());
  if (mlir::failed(lowerKernelsToLLVM(*lowered, target)))
    return makeError("kernels could not be lowered; see the messages above");
  llvm::LLVMContext llvmContext;
  Expected<std::unique_ptr<llvm::Module>> code = translateKernels(*lowered, llvmContext, target);
  if (!code)
    return code.takeError();
  if (stage == "llvm")
    return writeOutput(path, [&](llvm::raw_ostream &os) { (*code)->print(os, nullptr); });
  if (Error error = emitMachineCode(**code, target, stage, path))
    return error;
  return writeInterface(**kernels, target, path);
}
