// Into which pieces the dimensions fall along which values are cut.
#ifndef CTXC_LIB_SHARD_PIECES_H
#define CTXC_LIB_SHARD_PIECES_H

#include "ctxc/Shard/Cut.h"
#include "ctxc/Shard/Split.h"
#include "llvm/Support/Error.h"
#include <set>

namespace ctxc::shard {

/// A value that ops slice is cut slice by slice, and so are the values and parameters of which it
/// is made.
class Pieces {
public:
  /// Errors: a piece that the ranks cannot share evenly, where they have to.
  static llvm::Expected<Pieces> find(mlir::Block &body, const RegionSplit &split, Evenness parts);

  /// The part of a value along a dimension.
  Cut cutOf(mlir::Value value, int dim) const;

private:
  /// Of the places at which pieces end, those that are known so far; the dimension's end is one.
  using Ends = std::set<int64_t>;
  explicit Pieces(int64_t ranks) : ranks(ranks) {}
  llvm::Error join(mlir::Operation *op, const OpSplit &how, bool &isNew);

  int64_t ranks;
  std::map<std::pair<const void *, int>, Ends> all;
};

} // namespace ctxc::shard

#endif // CTXC_LIB_SHARD_PIECES_H
