//===- EmitCode.h - the stages of `ctxc compile` below the dialects -------===//
#ifndef CTXC_TOOLS_CTXC_EMITCODE_H
#define CTXC_TOOLS_CTXC_EMITCODE_H

#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Lowering/GPU.h"
#include "ctxc/Program/Program.h"
#include "tools/CommandLine/CommandLine.h"
#include "llvm/Support/Error.h"

namespace ctxc::driver {

/// Of --emit=cost.
struct CostOptions {
  int64_t visible[2] = {1024, 1}; ///< tokens that the (full) run and the reduced run see
  bool isJson = false;
  std::optional<double> bandwidth, rate; ///< bytes and operations a second

  /// From --visible, --format, --bandwidth and --rate, which --emit=cost alone has.
  static llvm::Expected<CostOptions> parse(const Arguments &arguments);
};

/// What to write, for which processor.
struct CodeOptions {
  std::string stage, path, prefix;
  CpuTarget target;
  std::unique_ptr<GpuTarget> gpu; ///< null: code for `target`
  int64_t rows = 1;               ///< of a GPU's kernels
  CostOptions cost;
  bool roundedPrompts = false;
  bool remarks = false; ///< what does not take its fast form on a processor says so

  /// From --emit, -o, --prefix, --target, --rows, --round-prompts and --remarks.
  static llvm::Expected<CodeOptions> parse(const Arguments &arguments);
};

/// Writes a stage of the program's kernels to a path ("-": the screen, for text):
///   linalg   kernels on tensors and memrefs, before tiling
///   llvm     LLVM IR, optimised for the target
///   asm      assembly
///   obj      an object file; shared: a library. Beside either, with the same
///            stem, NAME.h (C declarations) and NAME.json (the manifest).
/// and for a GPU
///   gpu      launches and kernels, in MLIR's gpu dialect
///   cost     bytes and operations of each kernel and of a token
///   ptx      NVIDIA's assembly; hsaco: AMD's code object; spirv: a binary module for Vulkan
/// A shared library needs a linker: c++, clang++ or g++ in PATH.
llvm::Error emitCode(const Program &program, const CodeOptions &options);

/// Writes what the kernels, lowered for a GPU, and a token of the program cost.
llvm::Error writeCost(const Program &program, mlir::ModuleOp kernels, const CodeOptions &options,
                      llvm::raw_ostream &os);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_EMITCODE_H
