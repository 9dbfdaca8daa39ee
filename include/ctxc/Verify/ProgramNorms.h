//===- ProgramNorms.h - norms of the parameters of a program --------------===//
#ifndef CTXC_VERIFY_PROGRAMNORMS_H
#define CTXC_VERIFY_PROGRAMNORMS_H

#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Verify/PatchNorms.h"
#include <functional>

namespace ctxc {

/// Which elements of a stored parameter, or of a slice of one, a process has.
using OwnElements = std::function<std::vector<ElementRun>(llvm::StringRef parameter)>;

/// Norms for the program's layers, of the values that `weights` has in the program's storage type.
/// `weights` and the program's MLIR context must outlive the result. Norms in `known` are not
/// computed again. With `own`, the norms are over these elements only.
std::unique_ptr<PatchNorms>
programNorms(const Program &program, Weights &weights,
             std::shared_ptr<KnownNorms> known = std::make_shared<KnownNorms>(),
             OwnElements own = nullptr);

} // namespace ctxc

#endif // CTXC_VERIFY_PROGRAMNORMS_H
