#include "Mixtures.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ctxc;

namespace {
/// Parameters and settings.
bool isSource(Operation *op) { return op->getNumOperands() == 0; }

/// Whether `set` has all ops that feed `op`, and at least one does.
bool feedsAlone(const Mixture::Ops &set, Operation *op) {
  bool fed = false;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && isSource(producer))
      continue;
    if (!producer || !set.contains(producer))
      return false;
    fed = true;
  }
  return fed;
}

/// The selection and the ops that read by its indices; then the ops that these alone feed, and
/// those that feed these alone.
void findRouter(Mixture &mixture, Block &body) {
  Mixture::Ops &router = mixture.router;
  router.insert(mixture.selection);
  for (Operation *user : mixture.selection->getUsers())
    if (isa<xf::GatherOp>(user))
      router.insert(user);
  for (Operation &op : body)
    if (!op.hasTrait<OpTrait::IsTerminator>() && feedsAlone(router, &op))
      router.insert(&op);
  for (Operation &op : llvm::reverse(body))
    if (!isSource(&op) && !op.use_empty() &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return router.contains(user); }))
      router.insert(&op);
}

/// The matrices, and every op on a path from one of them to another.
void findExperts(Mixture &mixture, Block &body) {
  Mixture::Ops matrices, after, before;
  for (Operation *user : mixture.selection->getUsers())
    if (isa<xf::ExpertLinearOp>(user))
      matrices.insert(user);
  after = before = matrices;
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      if (after.contains(operand.getDefiningOp()))
        after.insert(&op);
  for (Operation &op : llvm::reverse(body))
    if (llvm::any_of(op.getUsers(), [&](Operation *user) { return before.contains(user); }))
      before.insert(&op);
  for (Operation *op : after)
    if (before.contains(op))
      mixture.experts.insert(op);
}
} // namespace

llvm::SmallVector<Mixture> ctxc::findMixtures(xf::BlockOp block) {
  Block &body = block.getBody().front();
  llvm::SmallVector<Mixture> mixtures;
  Mixture::Ops taken;
  for (auto selection : body.getOps<xf::TopKOp>()) {
    int64_t count = cast<RankedTensorType>(selection.getScores().getType()).getDimSize(0);
    Mixture mixture{selection, int64_t(selection.getK()), count, {}, {}};
    findRouter(mixture, body);
    findExperts(mixture, body);
    for (Mixture::Ops *ops : {&mixture.router, &mixture.experts})
      for (Operation *op : llvm::to_vector(*ops))
        if (!taken.insert(op).second)
          ops->erase(op);
    mixtures.push_back(std::move(mixture));
  }
  return mixtures;
}
