//===- CpuTarget.h - which processor code is generated for ----------------===//
#ifndef CTXC_LOWERING_CPUTARGET_H
#define CTXC_LOWERING_CPUTARGET_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ctxc {

/// The processor that code is generated for.
struct CpuTarget {
  std::string triple = {};   ///< LLVM's name of the platform; empty: this process's
  std::string cpu;           ///< LLVM's name of the processor
  std::string features;      ///< LLVM's feature string
  int64_t lanes = 8;         ///< float32 lanes of a vector register
  int64_t registers = 16;    ///< vector registers
  bool fma = true;           ///< fused multiply-add is an instruction
  bool halfPrecision = true; ///< conversions from and to float16 are instructions
  bool bfloatPairs = false;  ///< sums of products of pairs of bfloat16 are an instruction
  int optimisation = 3;      ///< LLVM's level: 0 to 3, as in -O3
  /// What a machine must have to execute the code, of CpuFeatures.def, in its order. Of the
  /// baseline of x86-64 or AArch64 nothing.
  llvm::SmallVector<llvm::StringRef> needed = {};

  /// This process's processor with all that it has. Optimised as $CTXC_KERNEL_OPT says: kernels at
  /// 1 are compiled in half the time, for programs that run each a few times.
  static CpuTarget host();

  /// For code that is stored: `native` (this processor), x86-64-v2, x86-64-v3, x86-64-v4, aarch64,
  /// or a processor of x86-64 by LLVM's name. Uses no feature that the code could not ask a machine
  /// for. An error, with all names, where there is none of that name.
  static llvm::Expected<CpuTarget> named(llvm::StringRef name);

  bool isAArch64() const;
  /// Whether this machine could execute the code with a system's linker and loader.
  bool isOfThisArchitecture() const;
};

} // namespace ctxc

#endif // CTXC_LOWERING_CPUTARGET_H
