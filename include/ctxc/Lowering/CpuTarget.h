//===- CpuTarget.h - which processor code is generated for ----------------===//
#ifndef CTXC_LOWERING_CPUTARGET_H
#define CTXC_LOWERING_CPUTARGET_H

#include "ctxc/Lowering/Readings.h"
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
  bool tiles = false;        ///< sums of products of bfloat16 tiles are one instruction (AMX)
  Readings readings = {};    ///< the fastest ways to read matrices for a token
  int64_t bytesAhead = 3072; ///< how far ahead a decoded token asks for keys and values
  bool asksInLine = true;    ///< also for those that it reads from end to end
  int optimisation = 3;      ///< LLVM's level: 0 to 3, as in -O3
  /// The features that a machine must have to run the code, in the order of CpuFeatures.def; none
  /// for the baseline of x86-64 or AArch64.
  llvm::SmallVector<llvm::StringRef> needed = {};

  /// The processor of this process with all its features. The environment variable CTXC_KERNEL_OPT
  /// sets the optimisation level: at level 1, kernels compile in half the time, for programs that
  /// run each of them only a few times. Has tiles if CTXC_AMX is not `off` and the operating system
  /// gives this process their registers, which this function requests. Without AVX512-VNNI and
  /// AVX-VNNI if CTXC_VNNI is `off`: quantised matrices are then decoded to float32 unless
  /// multiplied in integers on request.
  static CpuTarget host();

  /// For code that is stored: `native` (this processor), x86-64-v2, x86-64-v3, x86-64-v4, aarch64,
  /// aarch64 with any of +dotprod, +i8mm, +bf16, or LLVM's name of an x86-64 processor. Uses only
  /// features that the code can test for at run time. An unknown name is an error that lists all
  /// names.
  static llvm::Expected<CpuTarget> named(llvm::StringRef name);

  /// For stored code, for an x86-64 processor that LLVM calls `cpu` and that has exactly
  /// `features`: a virtual machine may give its processor another name, so that the name does not
  /// decide the features.
  static CpuTarget x86(llvm::StringRef cpu, llvm::ArrayRef<llvm::StringRef> features);

  /// The same processor, for code that uses no tiles and therefore does not need them.
  CpuTarget withoutTiles() const;

  bool isAArch64() const;
  /// Whether the code is for this machine's architecture, so that the system can link and load it.
  bool isOfThisArchitecture() const;
};

} // namespace ctxc

#endif // CTXC_LOWERING_CPUTARGET_H
