#ifndef CTXC_LIB_SESSION_COMPLETEDWEIGHTS_H
#define CTXC_LIB_SESSION_COMPLETEDWEIGHTS_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Program/Weights.h"

namespace ctxc {

/// `weights`, and what they lack from `constants`; these come first where `weights` are not those
/// of a checkpoint, `stored`. The checkpoints must outlive the result.
std::unique_ptr<Weights> completedWeights(std::unique_ptr<Weights> weights,
                                          const Checkpoint *stored, const Checkpoint &constants);

/// Fails where `stored` has other numbers than `constants` for one of `names`, which are a part of
/// the program.
llvm::Error checkConstants(const Checkpoint &stored, const Checkpoint &constants,
                           llvm::ArrayRef<std::string> names);

} // namespace ctxc

#endif // CTXC_LIB_SESSION_COMPLETEDWEIGHTS_H
