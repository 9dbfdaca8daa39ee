#include "ctxc/Transforms/PermuteParts.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;

namespace ctxc {
namespace {

/// Entries of a value along one dimension: `size` of them, from `from` on.
struct Stretch {
  Value of;
  int64_t from, size;
};

int64_t sizeAlong(Value value, int64_t along) {
  return cast<RankedTensorType>(value.getType()).getDimSize(along);
}

class Permuter {
public:
  unsigned run(xf::BlockOp block);

private:
  Stretch stretchOf(Value part, int64_t along);
  Value firstOf(xf::ConcatOp concat);
  bool collect(xf::ConcatOp concat, Value whole);
  Value build(xf::ConcatOp concat, Value whole) const;

  llvm::DenseMap<Operation *, Stretch> stretches; ///< of slices: of what is no such slice itself
  llvm::DenseMap<Operation *, Value> firsts;      ///< of concatenations
  /// The last one's stretches of the whole, by where they begin: its size, and its place.
  std::map<int64_t, std::pair<int64_t, int64_t>> parts;
};

/// `part` as a stretch of a value that is no slice along this dimension.
Stretch Permuter::stretchOf(Value part, int64_t along) {
  auto slice = part.getDefiningOp<xf::SliceOp>();
  if (!slice || int64_t(slice.getAlong()) != along)
    return {part, 0, sizeAlong(part, along)};
  auto known = stretches.find(slice);
  if (known != stretches.end())
    return known->second;
  // Ops before this one are known: blocks are visited in their order.
  Stretch of = stretchOf(slice.getData(), along);
  Stretch stretch{of.of, of.from + int64_t(slice.getFrom()), sizeAlong(part, along)};
  stretches[slice] = stretch;
  return stretch;
}

/// The value of which the first entries are.
Value Permuter::firstOf(xf::ConcatOp concat) {
  Value part = concat.getParts().front();
  auto inner = part.getDefiningOp<xf::ConcatOp>();
  if (inner && inner.getAlong() == concat.getAlong())
    return firsts.lookup(inner);
  return stretchOf(part, concat.getAlong()).of;
}

/// Whether `concat` puts stretches of `whole` one behind the other that have each entry once; sets
/// `parts` then.
bool Permuter::collect(xf::ConcatOp concat, Value whole) {
  parts.clear();
  int64_t along = concat.getAlong();
  SmallVector<Value> pending(llvm::reverse(concat.getParts())); // the next one last
  while (!pending.empty()) {
    Value part = pending.pop_back_val();
    Stretch stretch = stretchOf(part, along);
    if (stretch.of != whole) {
      auto inner = part.getDefiningOp<xf::ConcatOp>();
      if (!inner || int64_t(inner.getAlong()) != along)
        return false;
      llvm::append_range(pending, llvm::reverse(inner.getParts()));
      continue;
    }
    // Entries that are there twice end the search, so that no op is looked into twice.
    auto [at, isNew] = parts.try_emplace(stretch.from, stretch.size, int64_t(parts.size()));
    auto next = std::next(at);
    bool overlaps = !isNew || (next != parts.end() && next->first < stretch.from + stretch.size);
    if (at != parts.begin()) {
      auto before = std::prev(at);
      overlaps |= before->first + before->second.first > stretch.from;
    }
    if (overlaps)
      return false;
  }
  return true; // as many entries as the whole has, and none twice
}

/// The permutation of `whole` that `parts` says; `whole` itself where it changes nothing.
Value Permuter::build(xf::ConcatOp concat, Value whole) const {
  SmallVector<int64_t> sizes, order(parts.size());
  for (auto [number, part] : llvm::enumerate(parts)) {
    sizes.push_back(part.second.first);
    order[part.second.second] = number;
  }
  if (llvm::is_sorted(order))
    return whole;
  OpBuilder builder(concat);
  return xf::PermuteOp::create(builder, concat.getLoc(), whole.getType(), whole, sizes, order,
                               concat.getAlong());
}

unsigned Permuter::run(xf::BlockOp block) {
  unsigned count = 0;
  llvm::SetVector<Operation *> unread;
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
    if (auto slice = dyn_cast<xf::SliceOp>(op))
      stretchOf(slice, slice.getAlong());
    auto concat = dyn_cast<xf::ConcatOp>(op);
    if (!concat)
      continue;
    Value whole = firsts[concat] = firstOf(concat);
    if (whole.getType() != concat.getType() || !collect(concat, whole))
      continue;
    Value permuted = build(concat, whole);
    concat.getResult().replaceAllUsesWith(permuted);
    unread.insert(concat);
    ++count;
  }
  while (!unread.empty()) {
    Operation *op = unread.pop_back_val();
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *from = operand.getDefiningOp();
          isa_and_nonnull<xf::SliceOp, xf::ConcatOp>(from) && from->use_empty())
        unread.insert(from);
  }
  return count;
}

} // namespace

unsigned permuteParts(ModuleOp module) {
  unsigned count = 0;
  for (xf::BlockOp block : module.getOps<xf::BlockOp>())
    count += Permuter().run(block);
  return count;
}

} // namespace ctxc
