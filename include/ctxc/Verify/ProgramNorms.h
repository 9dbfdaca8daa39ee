//===- ProgramNorms.h - norms of the parameters of a program --------------===//
#ifndef CTXC_VERIFY_PROGRAMNORMS_H
#define CTXC_VERIFY_PROGRAMNORMS_H

#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Verify/PatchNorms.h"

namespace ctxc {

/// Norms for the program's layers, of the numbers that `weights` has in the program's storage
/// type. `weights` and the program's MLIR context must outlive the result. Norms in `known` are not
/// computed again.
std::unique_ptr<PatchNorms>
programNorms(const Program &program, Weights &weights,
             std::shared_ptr<KnownNorms> known = std::make_shared<KnownNorms>());

} // namespace ctxc

#endif // CTXC_VERIFY_PROGRAMNORMS_H
