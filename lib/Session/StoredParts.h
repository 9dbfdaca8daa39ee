#ifndef CTXC_LIB_SESSION_STOREDPARTS_H
#define CTXC_LIB_SESSION_STOREDPARTS_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Import/Import.h"

namespace ctxc {

/// Parameters of a program that are parts of its author's tensors.
struct PartsOfWeights {
  std::vector<std::vector<uint8_t>> numbers;
  std::unique_ptr<Checkpoint> checkpoint; ///< points into `numbers`; null where there are none
};

/// Those of `parts` that `stored`, which has the author's tensors by their own names, does not have
/// by the program's. Fails where it has neither, or a tensor in which the part cannot be.
llvm::Expected<PartsOfWeights> partsOfWeights(const Checkpoint &stored,
                                              llvm::ArrayRef<StoredPart> parts);

} // namespace ctxc

#endif // CTXC_LIB_SESSION_STOREDPARTS_H
