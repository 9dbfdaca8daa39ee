//===- ProgramNorms.h - norms of the parameters of a program --------------===//
#ifndef CTXC_VERIFY_PROGRAMNORMS_H
#define CTXC_VERIFY_PROGRAMNORMS_H

#include "ctxc/Runtime/Program.h"
#include "ctxc/Runtime/Weights.h"
#include "ctxc/Verify/PatchNorms.h"

namespace ctxc {

/// Layers by the program's steps, numbers from `weights` in the type that the
/// program stores them in. `weights` must outlive the result; `program` need not.
std::unique_ptr<PatchNorms> programNorms(const Program &program, Weights &weights);

} // namespace ctxc

#endif // CTXC_VERIFY_PROGRAMNORMS_H
