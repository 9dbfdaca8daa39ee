//===- LocalBlock.h - a block as one of several ranks runs it -------------===//
//
// Each rank computes its parts of a block's values, from its parts of the parameters. Where ranks
// make a value whole together, the block is cut: it becomes segments, blocks of their own whose
// kernels know nothing of ranks, and transfers between these. A value that crosses from one segment
// to the next has a *slot*.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SHARD_LOCALBLOCK_H
#define CTXC_SHARD_LOCALBLOCK_H

#include "ctxc/Program/Program.h"
#include "ctxc/Shard/Cut.h"
#include "ctxc/Shard/Split.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace ctxc::shard {

/// How the value of one slot is made from that of another.
struct Transfer {
  enum Kind {
    Sum,     ///< of all ranks' terms
    Gather,  ///< the whole from all ranks' parts
    Collect, ///< the same on the first rank; zeros on the others
    Take,    ///< this rank's part of the whole; nothing is sent
  } kind = Sum;
  unsigned from = 0, to = 0;
  int64_t elements = 0; ///< of the whole
  Cut cut;              ///< of a part

  bool isSent() const { return kind != Take; }
};

/// A block between two exchanges. Its inputs and outputs are the values of slots.
struct Segment {
  std::vector<Transfer> before; ///< what is sent comes first, and then what is taken
  xf::BlockOp block;            ///< null where only transfers are left
  llvm::SmallVector<unsigned> inputs, outputs;
  bool predictsReplay = false; ///< stores what the block stores last
};

/// What the local name of a parameter, of a setting or of a loaded patch stands for: a part of it.
struct LocalSource {
  std::string name;             ///< in the block
  mlir::RankedTensorType whole; ///< its type
  Cut cut;
  unsigned part = 0; ///< of a patch, which is cut; the other parts are whole
};

struct LocalBlock {
  std::vector<Segment> segments;
  unsigned slots = 0;                   ///< the block's arguments have the first ones
  llvm::SmallVector<unsigned> results;  ///< the slots of the block's results
  llvm::StringMap<LocalSource> sources; ///< those that are cut, by their local names
  std::vector<std::string> states;      ///< what contextual ops keep, of the full run first
};

/// Blocks of one rank, which own their segments.
class LocalBlocks {
public:
  LocalBlocks(mlir::MLIRContext &context, int64_t rank, int64_t ranks);

  /// Splits `plain`, a layer's block, and in the same way its dual and its applied block, where
  /// there are any. Errors: more ranks than heads; what cannot be shared evenly; a block of which
  /// nothing can be split.
  llvm::Error add(xf::BlockOp plain, xf::BlockOp dual, xf::BlockOp applied);
  /// Splits one of the model's ends, where there is something to split. `isHead`: its result is
  /// logits, which the first rank alone gets.
  llvm::Error addEnd(xf::BlockOp end, bool isHead);
  /// The blocks of all steps.
  llvm::Error add(const Program &program);

  /// Null where the block is whole on every rank.
  const LocalBlock *find(xf::BlockOp block) const;
  /// The share of one of a plain block's parameters that this rank has.
  double shareOf(xf::BlockOp plain, xf::ParamOp param) const;

  mlir::ModuleOp module() const { return *segments; }
  int64_t rank() const { return own; }
  int64_t ranks() const { return all; }

private:
  llvm::Error localize(xf::BlockOp block, RegionSplit split, RegionRole role);

  int64_t own, all;
  mlir::OwningOpRef<mlir::ModuleOp> segments;
  std::map<mlir::Operation *, LocalBlock> blocks;
  std::map<mlir::Operation *, RegionSplit> splits;
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_LOCALBLOCK_H
