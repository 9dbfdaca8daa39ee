// Ops that are drawn as one.
#ifndef CTXC_LIB_REPORT_FOLDS_H
#define CTXC_LIB_REPORT_FOLDS_H

#include "dialects/XF/XF.h"
#include "llvm/ADT/DenseMap.h"
#include <string>

namespace ctxc {

/// Of a block of a program: a loop that was unrolled makes the same op in the same expression of
/// the source again and again, and one of these ops stands for all.
class Folds {
public:
  /// Ops of different `kind`s stay apart.
  Folds(xf::BlockOp block, llvm::function_ref<unsigned(mlir::Operation *)> kind);

  /// The op that is drawn in the place of `op`, which may be `op` itself.
  mlir::Operation *shown(mlir::Operation *op) const {
    auto found = first.find(op);
    return found == first.end() ? op : found->second;
  }
  /// "slice from 12", or "slice from, 16 times" where it stands for several.
  std::string text(mlir::Operation *op) const;

private:
  /// For how many ops `op` stands, with itself.
  unsigned count(mlir::Operation *op) const { return std::max(counts.lookup(op), 1u); }

  llvm::DenseMap<mlir::Operation *, mlir::Operation *> first;
  llvm::DenseMap<mlir::Operation *, unsigned> counts;
};

} // namespace ctxc

#endif // CTXC_LIB_REPORT_FOLDS_H
