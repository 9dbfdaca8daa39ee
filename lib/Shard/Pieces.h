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
  /// Errors: a piece that the ranks cannot share evenly, or by units, where they have to.
  static llvm::Expected<Pieces> find(mlir::Block &body, const RegionSplit &split, RegionRole role);

  /// The part of a value along a dimension.
  Cut cutOf(mlir::Value value, int dim) const;

private:
  /// Of the places at which pieces end, those that are known so far; the dimension's end is one.
  using Ends = std::set<int64_t>;
  using Key = std::pair<const void *, int>; ///< a value or a parameter, and a dimension
  Pieces(int64_t ranks, RegionRole role) : ranks(ranks), units(role.units), parts(role.parts) {}
  llvm::Error join(mlir::Operation *op, const OpSplit &how, bool &isNew);

  int64_t ranks, units;
  Evenness parts;
  std::map<Key, Ends> all;
  std::set<Key> ofUnits; ///< what is shared by units
};

} // namespace ctxc::shard

#endif // CTXC_LIB_SHARD_PIECES_H
