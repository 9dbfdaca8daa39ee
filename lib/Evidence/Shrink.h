// A block of the same structure in smaller sizes.
#ifndef CTXC_LIB_EVIDENCE_SHRINK_H
#define CTXC_LIB_EVIDENCE_SHRINK_H

#include "SizeSearch.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ctxc {

struct Shrunk {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< of the block alone; null where none was found
  NewSizes becomes;                         ///< what each size became
  std::string sizes;                        ///< "36 for 4096, 10 for 128"
};

/// Writes the block of `module`, its only one, again in smaller sizes: every size n becomes f(n),
/// where f(1) = 1, f keeps the order of sizes and all relations between them (SizesOpInterface),
/// and the parameters have at most `mostNumbers` entries. f is the first that `accept` takes
/// (SizeSearch.h). Quantised parameters become float32.
Shrunk shrink(mlir::ModuleOp module, int64_t mostNumbers,
              llvm::function_ref<bool(xf::BlockOp)> accept);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_SHRINK_H
