//===- Codegen.h - kernels as machine code: in process, or in a file ------===//
#ifndef CTXC_LOWERING_CODEGEN_H
#define CTXC_LOWERING_CODEGEN_H

#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/KernelCache.h"
#include "ctxc/Lowering/PromptProducts.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/ctxc_kernel.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace ctxc {

/// Registers the dialects, interfaces and translations that lowering needs.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// The distinct blocks of the program that kernels are made of, in order.
llvm::SmallVector<xf::BlockOp> kernelBlocks(const Program &program);

/// A module of linalg kernels, one for each block, named by kernelName.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
buildKernelModule(llvm::ArrayRef<xf::BlockOp> blocks, llvm::StringRef prefix = "ctxc",
                  StateLayout layout = StateLayout::ByToken);

/// The block's symbol as a C identifier, after `prefix` and "_". A symbol that is not a C
/// identifier also gets its digest, so that no two symbols have the same name.
std::string kernelName(xf::BlockOp block, llvm::StringRef prefix = "ctxc");

/// LLVM IR of a lowered module, optimised for `target`. A prefix is given for code that is stored:
/// its entries refuse to run on a machine that lacks what the target needs, and `<prefix>_refusal`
/// says why.
llvm::Expected<std::unique_ptr<llvm::Module>> translateKernels(mlir::ModuleOp lowered,
                                                               llvm::LLVMContext &context,
                                                               const CpuTarget &target,
                                                               llvm::StringRef prefix = "");

/// Writes assembly or a position-independent object file.
llvm::Error emitMachineCode(llvm::Module &module, const CpuTarget &target,
                            llvm::CodeGenFileType type, llvm::raw_pwrite_stream &os);

/// The input of a library's header and manifest.
struct LibraryInterface {
  mlir::ModuleOp kernels; ///< with kernels in linalg
  const Program &program; ///< the program whose layers call the kernels
  const CpuTarget &target;
  std::string prefix; ///< all names begin with it
};

/// The C header: ctxc_kernel.h, the kernels, and their arguments in order.
void writeKernelHeader(const LibraryInterface &library, llvm::raw_ostream &os);
/// The manifest (JSON): the same for programs, with strides and alignments, and for each layer of
/// the model the kernel that it calls, with parameters and settings.
void writeKernelManifest(const LibraryInterface &library, llvm::raw_ostream &os);

/// Object files of modules of linalg kernels. They come from `cache`, or the modules are lowered
/// and compiled, in the threads of their context, and the objects are cached. Meanwhile,
/// `isCancelled` is called in the caller's thread: if it returns true, only the objects that are
/// already being compiled are finished, and the error is Cancelled.
llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileKernels(llvm::ArrayRef<mlir::ModuleOp> kernels, const CpuTarget &target,
               const KernelCache &cache = KernelCache(""),
               const std::function<bool()> &isCancelled = {});

/// Kernels loaded into this process.
class KernelLibrary {
public:
  using Kernel = int32_t (*)(const ctxc_call *);
  using Workspace = int64_t (*)(int64_t rows, int64_t visible0, int64_t visible1);

  /// Loads the object files that compileKernels made for this processor.
  static llvm::Expected<std::unique_ptr<KernelLibrary>>
  load(std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects);
  virtual ~KernelLibrary() = default;

  virtual llvm::Expected<Kernel> kernel(llvm::StringRef name) = 0;
  virtual llvm::Expected<Workspace> workspace(llvm::StringRef name) = 0;
};

} // namespace ctxc

#endif // CTXC_LOWERING_CODEGEN_H
