// Numbers of a block that may be what they are because of its sizes: 1/512 beside a width of 512,
// or 1/√128 beside heads of 128. Whether they are, nobody says; so what is shown of the block in
// smaller sizes is to hold whether they follow or not.
#ifndef CTXC_LIB_EVIDENCE_RELATEDNUMBERS_H
#define CTXC_LIB_EVIDENCE_RELATEDNUMBERS_H

#include "SizeSearch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ctxc {

/// What `number` may become where sizes become `sizes`, the likeliest first, if it is a product of
/// powers of one or two of them and a small fraction. Empty where it is no such number, or none
/// that changes.
llvm::SmallVector<double, 2> relatedNumbers(double number, const NewSizes &sizes);

/// Copies of `smaller`, a module whose sizes became `sizes`, in which numbers followed: all that
/// may have, and each by itself. At most 8.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>> withRelatedNumbers(mlir::ModuleOp smaller,
                                                                  const NewSizes &sizes);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_RELATEDNUMBERS_H
