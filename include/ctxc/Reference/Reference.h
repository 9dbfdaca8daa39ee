//===- Reference.h - the reference executor -------------------------------===//
//
// Runs a model as the dialects define it: float64, one op after the other, no
// fusion. It is slow and plain, and every compiled kernel is tested against it. Weights are
// read in their storage type and widened piece by piece.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REFERENCE_REFERENCE_H
#define CTXC_REFERENCE_REFERENCE_H

#include "ctxc/Program/Executor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Reference/Registration.h"

namespace ctxc {

/// An executor of `program`, which runs Algorithm 1 through the program's dual
/// blocks. The program's module and the weights must outlive it.
std::unique_ptr<Executor> createReferenceExecutor(const Program &program, Weights &weights);

} // namespace ctxc

#endif // CTXC_REFERENCE_REFERENCE_H
