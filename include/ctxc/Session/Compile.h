//===- Compile.h - a model's kernels as code, for this machine or another -===//
#ifndef CTXC_SESSION_COMPILE_H
#define CTXC_SESSION_COMPILE_H

#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Lowering/GPU.h"
#include "ctxc/Session/Options.h"
#include <memory>
#include <optional>
#include <string>

namespace ctxc {

/// The stages of the compilation below the xf and patch dialects.
enum class CodeStage {
  Linalg,   ///< kernels on tensors and memrefs, as MLIR
  LLVM,     ///< LLVM IR, optimised for the target
  Assembly, ///< the target's assembly
  Object,   ///< an object file, position independent, with a C header and a manifest
  Gpu,      ///< launches and kernels, in MLIR's gpu dialect
  GpuCode   ///< code for a GPU: PTX, an AMD code object, or a SPIR-V module (GpuTarget::stage)
};

/// What Model::compile makes, and for which machine.
struct CompileOptions {
  CodeStage stage = CodeStage::Object;
  std::optional<CpuTarget> processor;   ///< for the stages up to Object; none: this processor
  std::shared_ptr<const GpuTarget> gpu; ///< for Gpu and GpuCode, which need it
  std::string prefix = "ctxc";          ///< all names begin with it: a C identifier
  int64_t rows = 1; ///< tokens per call of GPU kernels: 1: decode, more: prefill
  /// Prefill kernels round activations to bfloat16 before products with bfloat16 weights, on
  /// targets with bfloat16 products (on GPUs: kernels for more than one token).
  PromptProducts prompts = PromptProducts::Exact;
  /// Emits a remark for each op that cannot use its fast form on a processor.
  bool remarks = false;
};

/// Fails with an OptionError if `options` cannot be used with any model.
llvm::Error checkCompileOptions(const CompileOptions &options);

/// What Model::compile gives.
struct CompiledCode {
  std::string code;             ///< text, or the bytes of a file
  std::string header, manifest; ///< for Object: the C header, and its content as JSON
};

} // namespace ctxc

#endif // CTXC_SESSION_COMPILE_H
