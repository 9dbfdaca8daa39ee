//===- LocalBlock.h - a block as one of several ranks runs it -------------===//
//
// Each rank computes its parts of a block's values from its parts of the parameters. The block is
// cut wherever the ranks have to exchange parts of a value. It becomes *segments*, which are blocks
// of their own whose kernels do not communicate, and *transfers* between them. A value that goes
// from one segment to another is kept in a *slot*.
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
    Sum,     ///< the sum of all ranks' terms
    Gather,  ///< the whole value from all ranks' parts
    Collect, ///< the same on the first rank; zeros on the others
    Take,    ///< this rank's part of the whole value; nothing is sent
  } kind = Sum;
  unsigned from = 0, to = 0;
  int64_t elements = 0; ///< of the whole value
  Cut cut;              ///< of the value, where one of the slots has a part

  bool isSent() const { return kind != Take; }
};

/// The part of a block between two exchanges.
struct Segment {
  std::vector<Transfer> before; ///< run before the block: those that send, then those that do not
  xf::BlockOp block;            ///< null if only transfers are left
  llvm::SmallVector<unsigned> inputs, outputs; ///< the slots of the block's arguments and results
  bool predictsReplay = false; ///< the replay error of this segment is that of the whole block
};

/// The tensor that a local name stands for: a part of a parameter, a setting or a loaded patch.
struct LocalSource {
  std::string name;             ///< in the block
  mlir::RankedTensorType whole; ///< its type
  Cut cut;
  unsigned part = 0; ///< which of a loaded patch's tensors is cut; the others are whole
};

struct LocalBlock {
  std::vector<Segment> segments;
  unsigned slots = 0;                   ///< how many; the first are the block's arguments
  llvm::SmallVector<unsigned> results;  ///< the slots of the block's results
  llvm::StringMap<LocalSource> sources; ///< those that are cut, by their local names
  std::vector<std::string> states;      ///< of contextual ops; the full run's come first
};

/// The local blocks of one rank.
class LocalBlocks {
public:
  LocalBlocks(mlir::MLIRContext &context, int64_t rank, int64_t ranks);

  /// Splits `plain`, a layer's block, and in the same way its dual and its applied block, where
  /// there are any. Errors: there are more ranks than heads; something cannot be shared evenly;
  /// nothing in the block can be split.
  llvm::Error add(xf::BlockOp plain, xf::BlockOp dual, xf::BlockOp applied);
  /// Splits one of the model's ends, if something in it can be split. `isHead`: its result is the
  /// logits, which only the first rank gets.
  llvm::Error addEnd(xf::BlockOp end, bool isHead);
  /// The blocks of all steps.
  llvm::Error add(const Program &program);
  /// The same where layers are several steps: some of them may have nothing to split.
  llvm::Error addPieces(const Program &program);

  /// Null if the block is whole on every rank.
  const LocalBlock *find(xf::BlockOp block) const;
  /// The fraction of a plain block's parameter that this rank has.
  double shareOf(xf::BlockOp plain, xf::ParamOp param) const;

  mlir::ModuleOp module() const { return *segments; }
  int64_t rank() const { return own; }
  int64_t ranks() const { return all; }

private:
  llvm::Expected<bool> isSplit(xf::BlockOp plain);
  llvm::Expected<RegionRole> roleOf(xf::BlockOp layer) const;
  llvm::Error localize(xf::BlockOp block, RegionSplit split, RegionRole role);

  int64_t own, all;
  mlir::OwningOpRef<mlir::ModuleOp> segments;
  std::map<mlir::Operation *, LocalBlock> blocks;
  std::map<mlir::Operation *, RegionSplit> splits;
};

} // namespace ctxc::shard

#endif // CTXC_SHARD_LOCALBLOCK_H
