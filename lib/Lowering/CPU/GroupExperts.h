// Selected experts of a mixture as contractions, one for each expert, with all the vectors for
// which it is selected.
//
// A contraction reads its matrix once for all its vectors. So the products of all rows and slots
// are ordered by their experts (ctxc/Numerics/ExpertGroups.h), their vectors are copied one after
// the other in this order, and the sums are copied back to their rows and slots. No sum depends on
// which other rows have selected the expert, since the order of a sum does not depend on the number
// of vectors (Contraction.h).
#ifndef CTXC_LIB_LOWERING_GROUPEXPERTS_H
#define CTXC_LIB_LOWERING_GROUPEXPERTS_H

#include "dialects/Kernel/Kernel.h"
#include <optional>

namespace ctxc {

/// Replaces every kernel.experts by a loop over the experts around a contraction with the matrix of
/// an expert. The contraction's vectors and sums are rows of memory that is allocated outside of
/// the loop.
void groupExperts(mlir::ModuleOp module);

/// A contraction that groupExperts has made.
struct OfExpert {
  mlir::Value vectors;   ///< of all experts, (rows · slots, k)
  mlir::Value first;     ///< which of them is the contraction's first
  mlir::Operation *loop; ///< over the experts
};
/// None for another contraction.
std::optional<OfExpert> ofExpert(kernel::ContractOp contraction);

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_GROUPEXPERTS_H
