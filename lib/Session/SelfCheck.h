//===- SelfCheck.h - what was read of an exported program, beside PyTorch ---===//
//
// A .pt2 file carries what PyTorch computes by its module (ctxc/Import/SourceNumbers.h). The
// program that ctxc has read is run for the same tokens, in float64. Where the two differ by more
// than rounding explains, ctxc has read the program wrongly, and nothing that it says of it is
// worth anything: every verdict and every verification compares ctxc's runs with each other alone.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_SESSION_SELFCHECK_H
#define CTXC_LIB_SESSION_SELFCHECK_H

#include "ctxc/Import/SourceNumbers.h"
#include "ctxc/Program/Weights.h"
#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// The numbers of parameters that a file lacks, as python/ctxc/_source_numbers.py makes them.
std::unique_ptr<Weights> selfCheckWeights();

/// The runs of `numbers` by the program in `module`. Errors: they differ; the message begins with
/// `name`. Text: why they could not be compared; empty where they agree.
llvm::Expected<std::string> compareWithSource(llvm::StringRef name, mlir::ModuleOp module,
                                              Weights &weights, const SourceNumbers &numbers);

/// The name under which it is kept that what is in `module` agrees with the numbers of a file.
std::string keyOfComparison(mlir::ModuleOp module, const SourceNumbers &numbers);

} // namespace ctxc

#endif // CTXC_LIB_SESSION_SELFCHECK_H
