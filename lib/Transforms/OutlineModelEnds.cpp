// Outlining: a model's ends become blocks, so that everything that runs is a layer.
//
// An op's dependences decide to which end it belongs: what reads a layer's
// result is the head's, what feeds a layer is the embedding's, and an op that
// does both stands between layers, which is an error. Ops without operands
// (parameters, settings, the token) go wherever they are used.
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ctxc {
namespace {

bool isSource(Operation *op) {
  return op && op->getNumOperands() == 0 && !isa<xf::LayerOp, xf::ContextualOpInterface>(op);
}

class Outliner {
public:
  explicit Outliner(xf::ModelOp model) : model(model), body(model.getBody().front()), b(model) {}
  LogicalResult run();

private:
  LogicalResult classify();
  LogicalResult outline(StringRef suffix, const llvm::SetVector<Operation *> &ops,
                        ArrayRef<Value> results, Operation *before);

  xf::ModelOp model;
  Block &body;
  OpBuilder b;
  bool hasLayers = false;
  llvm::SetVector<Operation *> embedding, head; ///< in the order of the model
};

LogicalResult Outliner::classify() {
  llvm::SmallPtrSet<Operation *, 32> afterLayer, beforeLayer;
  for (Operation &op : body)
    for (Value v : op.getOperands())
      if (Operation *def = v.getDefiningOp())
        if (isa<xf::LayerOp>(def) || afterLayer.contains(def))
          afterLayer.insert(&op);
  for (Operation &op : llvm::reverse(body))
    for (Operation *user : op.getUsers())
      if (isa<xf::LayerOp>(user) || beforeLayer.contains(user))
        beforeLayer.insert(&op);
  for (Operation &op : body.without_terminator()) {
    if (isa<xf::LayerOp>(op)) {
      hasLayers = true;
      continue;
    }
    if (isSource(&op))
      continue;
    bool after = afterLayer.contains(&op), before = beforeLayer.contains(&op);
    if (after && before)
      return op.emitOpError("stands between layers of model '")
             << model.getSymName() << "'; put it into the block before or after it";
    (before ? embedding : head).insert(&op);
  }
  return success();
}

/// Moves `ops` (and copies of the sources that they use) into a block, and calls it
/// in front of `before`.
LogicalResult Outliner::outline(StringRef suffix, const llvm::SetVector<Operation *> &ops,
                                ArrayRef<Value> results, Operation *before) {
  std::string name = (model.getSymName() + suffix).str();
  if (Operation *taken = SymbolTable::lookupSymbolIn(model->getParentOp(), name)) {
    auto diag = model.emitOpError("needs the name '")
                << name << "' for one of its ends, which is taken";
    diag.attachNote(taken->getLoc()) << "here; rename this";
    return diag;
  }
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> sources;
  auto use = [&](Value v) {
    Operation *def = v.getDefiningOp();
    if (isSource(def))
      sources.insert(def);
    else if (!ops.contains(def))
      inputs.insert(v);
  };
  for (Operation *op : ops)
    llvm::for_each(op->getOperands(), use);
  llvm::for_each(results, use);

  SmallVector<Value> outer(inputs.begin(), inputs.end());
  auto signature = b.getFunctionType(TypeRange(ValueRange(outer)), TypeRange(ValueRange(results)));
  b.setInsertionPoint(model);
  auto block = xf::BlockOp::create(b, model.getLoc(), b.getStringAttr(name),
                                   TypeAttr::get(signature), /*sym_visibility=*/nullptr,
                                   /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &inner = block.getBody().emplaceBlock();
  IRMapping values;
  for (Value v : outer)
    values.map(v, inner.addArgument(v.getType(), v.getLoc()));
  b.setInsertionPointToStart(&inner);
  for (Operation &op : body)
    if (ops.contains(&op) || sources.contains(&op))
      b.clone(op, values);
  xf::YieldOp::create(b, model.getLoc(),
                      llvm::map_to_vector(results, [&](Value v) { return values.lookup(v); }));

  b.setInsertionPoint(before);
  auto layer = xf::LayerOp::create(b, before->getLoc(), TypeRange(ValueRange(results)), name, outer,
                                   /*prefix=*/"", /*settings=*/DictionaryAttr(),
                                   /*bind=*/DictionaryAttr(), /*frozen=*/ArrayAttr());
  for (auto [value, result] : llvm::zip_equal(results, layer.getResults())) {
    Value old = value;
    bool source = isSource(old.getDefiningOp());
    old.replaceUsesWithIf(result, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      bool outside = user != layer && !ops.contains(user);
      return outside && (!source || isa<xf::LayerOp, xf::YieldOp>(user));
    });
  }
  return success();
}

LogicalResult Outliner::run() {
  if (failed(classify()))
    return failure();
  // The embedding returns the values that layers and the head read of it, even sources
  // that a layer takes as a residual stream.
  auto yield = cast<xf::YieldOp>(body.getTerminator());
  llvm::SetVector<Value> toLayers;
  Operation *firstLayer = yield;
  for (Operation &op : llvm::reverse(body)) {
    if (isa<xf::LayerOp>(op))
      firstLayer = &op;
    if (isa<xf::LayerOp>(op) || head.contains(&op) || &op == yield)
      for (Value v : op.getOperands()) {
        Operation *def = v.getDefiningOp();
        if (embedding.contains(def) || (isSource(def) && isa<xf::LayerOp>(op)))
          toLayers.insert(v);
      }
  }
  if (!toLayers.empty() && failed(outline("_embed", embedding, toLayers.getArrayRef(), firstLayer)))
    return failure();
  Value logits = yield.getOperand(0);
  if (!isa_and_nonnull<xf::LayerOp>(logits.getDefiningOp()) &&
      failed(outline(hasLayers ? "_head" : "_forward", head, logits, yield)))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!isa<xf::LayerOp, xf::YieldOp>(op) && op.use_empty())
      op.erase();
  return success();
}

} // namespace

LogicalResult outlineModelEnds(xf::ModelOp model) { return Outliner(model).run(); }

} // namespace ctxc
