// Layers in parts: the ops of a block are put in an order in which each matrix to fit stands alone,
// and each stretch of them becomes a block of its own.
#include "ctxc/Transforms/SplitLayers.h"
#include "FreeName.h"
#include "PlanSites.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;

namespace ctxc {
namespace {

/// Ops without operands (parameters, settings, the token) go wherever they are used.
bool isOperandless(Operation *op) {
  return op && op->getNumOperands() == 0 && !isa<xf::ContextualOpInterface>(op);
}

/// Steps cannot pass on the result of xf.top_k. So each step that uses it has a copy of the op, and
/// reads the scores that it selects from.
bool isCopied(Operation *op) { return isOperandless(op) || isa_and_nonnull<xf::TopKOp>(op); }

/// A new block, with the values of the original block that it reads and gives.
struct Part {
  xf::BlockOp block;
  SmallVector<Value> inputs, outputs;
};

/// The parts of one block.
struct Parts {
  SmallVector<Part> steps;
  SmallVector<unsigned> matrices;                               ///< of each site: its step
  SmallVector<Part> targets;                                    ///< of each site
  SmallVector<std::pair<xf::AttentionOp, unsigned>> attentions; ///< with their steps
};

class Splitter {
public:
  Splitter(ModuleOp module, xf::BlockOp block, ArrayRef<FitSite> sites)
      : module(module), block(block), sites(sites), b(block) {}
  FailureOr<Parts> run();

private:
  using Ops = llvm::SetVector<Operation *>;

  Ops neededFor(ArrayRef<Value> values);
  void cut(const Ops &ops);
  llvm::SetVector<Value> readBy(const Ops &ops) const;
  Part build(const Ops &ops, ArrayRef<Value> outputs, StringRef suffix);
  Part buildTarget(const FitSite &site);

  ModuleOp module;
  xf::BlockOp block;
  ArrayRef<FitSite> sites;
  OpBuilder b;
  llvm::SmallPtrSet<Operation *, 32> placed;
  std::vector<Ops> stretches;
};

/// The values besides the solved ones that `links` read.
SmallVector<Value> othersOf(ArrayRef<ChainLink> links) {
  llvm::SetVector<Value> others;
  for (const ChainLink &link : links)
    for (OpOperand &operand : link.op->getOpOperands())
      if (operand.getOperandNumber() != link.operand && !isCopied(operand.get().getDefiningOp()))
        others.insert(operand.get());
  return others.takeVector();
}

/// Whether it reads a matrix, or keeps what it reads.
bool isDear(Operation *op) {
  return isa<xf::ContextualOpInterface>(op) || llvm::any_of(op->getOperands(), [](Value operand) {
           auto param = operand.getDefiningOp<xf::ParamOp>();
           return param && cast<RankedTensorType>(param.getType()).getRank() > 1;
         });
}

/// What is known of the product before it is computed.
SmallVector<Value> readByProduct(const FitSite &site) {
  ArrayRef<ChainLink> links = site.toSum;
  if (site.shared) // the last link adds its product
    links = links.drop_back();
  SmallVector<Value> values = othersOf(links);
  auto dataOf = [](Operation *matrix) {
    return cast<xf::AssignableOpInterface>(matrix).getDataOperand().get();
  };
  values.push_back(dataOf(site.first()));
  if (auto experts = dyn_cast<xf::ExpertLinearOp>(site.first()))
    values.push_back(experts.getSelected().getDefiningOp<xf::TopKOp>().getScores());
  if (site.shared)
    values.push_back(dataOf(site.shared));
  if (site.sharedGate)
    values.push_back(site.sharedGate);
  return values;
}

/// The ops that have to run before `values` are known, of those that no stretch has yet.
Splitter::Ops Splitter::neededFor(ArrayRef<Value> values) {
  llvm::SmallPtrSet<Operation *, 32> needed;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp())
      needed.insert(op);
  for (Operation &op : llvm::reverse(block.getBody().front()))
    if (needed.contains(&op))
      for (Value operand : op.getOperands())
        if (Operation *def = operand.getDefiningOp())
          needed.insert(def);
  Ops ops;
  for (Operation &op : block.getBody().front())
    if (needed.contains(&op) && !isCopied(&op) && !placed.contains(&op))
      ops.insert(&op);
  return ops;
}

void Splitter::cut(const Ops &ops) {
  if (ops.empty())
    return;
  placed.insert(ops.begin(), ops.end());
  stretches.push_back(ops);
}

/// The values that `ops` read and do not make, without sources.
llvm::SetVector<Value> Splitter::readBy(const Ops &ops) const {
  llvm::SetVector<Value> values;
  auto add = [&](Value operand) {
    if (auto top = operand.getDefiningOp<xf::TopKOp>())
      operand = top.getScores();
    if (Operation *def = operand.getDefiningOp(); !isOperandless(def) && !ops.contains(def))
      values.insert(operand);
  };
  for (Operation *op : ops)
    llvm::for_each(op->getOperands(), add);
  return values;
}

Part Splitter::build(const Ops &ops, ArrayRef<Value> outputs, StringRef suffix) {
  Part part;
  part.inputs = readBy(ops).takeVector();
  part.outputs.assign(outputs.begin(), outputs.end());
  b.setInsertionPointAfter(block);
  auto type =
      b.getFunctionType(TypeRange(ValueRange(part.inputs)), TypeRange(ValueRange(part.outputs)));
  part.block =
      xf::BlockOp::create(b, block.getLoc(), b.getStringAttr(freeName(module, block, suffix)),
                          TypeAttr::get(type), /*sym_visibility=*/nullptr,
                          /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = part.block.getBody().emplaceBlock();
  IRMapping values;
  for (Value input : part.inputs)
    values.map(input, body.addArgument(input.getType(), input.getLoc()));
  b.setInsertionPointToStart(&body);
  for (Operation &op : block.getBody().front()) {
    bool isUsed = isCopied(&op) &&
                  llvm::any_of(op.getUsers(), [&](Operation *user) { return ops.contains(user); });
    if (isUsed || ops.contains(&op))
      b.clone(op, values);
  }
  xf::YieldOp::create(b, block.getLoc(),
                      llvm::map_to_vector(outputs, [&](Value v) { return values.lookup(v); }));
  return part;
}

/// (goal, others) → what G's output has to be.
Part Splitter::buildTarget(const FitSite &site) {
  Part part;
  part.inputs.push_back(site.goal);
  for (Value other : othersOf(site.links))
    part.inputs.push_back(other);
  b.setInsertionPointAfter(block);
  Value result = site.toSum.empty() ? site.site->getResult(0) : site.product();
  part.outputs.push_back(result);
  auto type = b.getFunctionType(TypeRange(ValueRange(part.inputs)), result.getType());
  part.block =
      xf::BlockOp::create(b, block.getLoc(), b.getStringAttr(freeName(module, block, "_target")),
                          TypeAttr::get(type), /*sym_visibility=*/nullptr,
                          /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = part.block.getBody().emplaceBlock();
  IRMapping values;
  Value target = body.addArgument(site.goal.getType(), site.goal.getLoc());
  for (Value other : ArrayRef(part.inputs).drop_front())
    values.map(other, body.addArgument(other.getType(), other.getLoc()));
  b.setInsertionPointToStart(&body);
  for (const ChainLink &link : llvm::reverse(site.links)) {
    SmallVector<Value> operands;
    for (OpOperand &operand : link.op->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      bool isWanted = operand.getOperandNumber() == link.operand;
      if (!isWanted && isOperandless(def) && !values.contains(operand.get()))
        b.clone(*def, values);
      operands.push_back(isWanted ? Value() : values.lookup(operand.get()));
    }
    // What is solved is a clone that stands here, with the parameters here, and is not needed
    // after.
    Operation *clone = b.clone(*link.op, values);
    target = cast<xf::SolvableOpInterface>(clone).buildSolve(b, link.operand, target, operands);
    clone->erase();
  }
  xf::YieldOp::create(b, block.getLoc(), target);
  return part;
}

FailureOr<Parts> Splitter::run() {
  Parts parts;
  SmallVector<xf::AttentionOp> attentions(block.getBody().getOps<xf::AttentionOp>());
  ArrayRef<xf::AttentionOp> ahead = attentions;
  auto cutAttentions = [&](Operation *before) { // null: all that are left
    for (; !ahead.empty() && (!before || xf::AttentionOp(ahead.front())->isBeforeInBlock(before));
         ahead = ahead.drop_front()) {
      xf::AttentionOp attention = ahead.front();
      cut(neededFor(llvm::to_vector(attention->getOperands())));
      parts.attentions.push_back({attention, stretches.size()});
      cut(neededFor(attention.getResult()));
    }
  };
  for (const FitSite &site : sites) {
    Operation *matrix = site.first();
    cutAttentions(matrix);
    SmallVector<Value> before = othersOf(site.links);
    llvm::append_range(before, readByProduct(site));
    Ops needed = neededFor(before);
    if (needed.contains(matrix) || placed.contains(matrix))
      return matrix->emitOpError("cannot be fitted: its target reads what it writes");
    cut(needed);
    parts.matrices.push_back(stretches.size());
    cut(neededFor(site.product()));
    // Alone, so that a caller who changes the product repeats nothing else to know the goal.
    if (Ops toGoal = neededFor(site.goal); llvm::none_of(toGoal, isDear))
      cut(toGoal);
  }
  cutAttentions(nullptr);
  Operation *yield = block.getBody().front().getTerminator();
  cut(neededFor(llvm::to_vector(yield->getOperands())));

  llvm::SetVector<Value> later; // what later stretches, the results and the targets read
  later.insert(yield->operand_begin(), yield->operand_end());
  for (const FitSite &site : sites) {
    later.insert(site.goal);
    for (Value other : othersOf(site.links))
      later.insert(other);
  }
  for (const Ops &ops : llvm::reverse(stretches)) {
    SmallVector<Value> outputs;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (later.contains(result))
          outputs.push_back(result);
    parts.steps.push_back(build(ops, outputs, "_part"));
    for (Value value : parts.steps.back().inputs)
      later.insert(value);
  }
  std::reverse(parts.steps.begin(), parts.steps.end());
  for (const FitSite &site : sites)
    parts.targets.push_back(buildTarget(site));
  return parts;
}

/// The entries of `all` whose names `has` knows; null where there are none.
DictionaryAttr filter(DictionaryAttr all, llvm::function_ref<bool(StringRef)> has) {
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute entry : all ? all.getValue() : ArrayRef<NamedAttribute>())
    if (has(entry.getName()))
      kept.push_back(entry);
  return kept.empty() ? DictionaryAttr() : DictionaryAttr::get(all.getContext(), kept);
}

/// Calls `part` in the place of `layer`, and binds what it gives.
xf::LayerOp callPart(OpBuilder &b, xf::LayerOp layer, const Part &part, IRMapping &values) {
  llvm::StringSet<> settings, params;
  xf::BlockOp block = part.block;
  for (xf::SettingOp op : block.getBody().getOps<xf::SettingOp>())
    settings.insert(op.getName());
  for (xf::ParamOp op : block.getBody().getOps<xf::ParamOp>())
    params.insert(op.getName());
  auto inputs = llvm::map_to_vector(part.inputs, [&](Value v) { return values.lookup(v); });
  auto call = xf::LayerOp::create(
      b, layer.getLoc(), TypeRange(ValueRange(part.outputs)), block.getSymName(), inputs,
      layer.getPrefix(),
      filter(layer.getSettingsAttr(), [&](StringRef name) { return settings.contains(name); }),
      filter(layer.getBindAttr(), [&](StringRef name) { return params.contains(name); }),
      /*frozen=*/ArrayAttr());
  return call;
}

SplitMatrix describe(Operation *op, xf::LayerOp layer, const IRMapping &values) {
  SplitMatrix matrix;
  auto assignable = cast<xf::AssignableOpInterface>(op);
  xf::ParamOp param = parameterOf(assignable);
  matrix.data = values.lookup(assignable.getDataOperand().get());
  matrix.matrix = layer.getStoredName(param.getName());
  llvm::append_range(matrix.shape, cast<RankedTensorType>(param.getType()).getShape());
  auto experts = dyn_cast<xf::ExpertLinearOp>(op);
  matrix.transposed = experts ? experts.getTransposed()
                              : cast<patch::PatchableOpInterface>(op).getPatchForm().transposed;
  return matrix;
}

SplitExperts describeExperts(const FitSite &output, xf::LayerOp layer, const IRMapping &values) {
  auto matrices = cast<xf::ExpertLinearOp>(output.first());
  auto top = matrices.getSelected().getDefiningOp<xf::TopKOp>();
  auto sum =
      llvm::find_if(output.toSum, [](ChainLink link) { return isa<xf::CombineOp>(link.op); });
  SplitExperts experts;
  experts.scores = values.lookup(top.getScores());
  experts.gates = values.lookup(cast<xf::CombineOp>(sum->op).getWeights());
  experts.count = cast<RankedTensorType>(matrices.getBank().getType()).getDimSize(0);
  experts.chosen = top.getK();
  experts.groups = top.getGroups();
  experts.keep = top.getKeep();
  if (output.shared)
    experts.shared = describe(output.shared, layer, values);
  if (output.sharedGate)
    experts.sharedGate = values.lookup(output.sharedGate);
  return experts;
}

SplitSite describe(const FitSite &output, xf::LayerOp layer, const IRMapping &values) {
  SplitSite site;
  static_cast<SplitMatrix &>(site) = describe(output.first(), layer, values);
  site.product = values.lookup(output.product());
  site.goal = values.lookup(output.goal);
  if (!output.toSum.empty()) {
    site.shape.erase(site.shape.begin());
    site.experts = describeExperts(output, layer, values);
    return site;
  }
  if (auto scale = dyn_cast<xf::ScaleOp>(output.site)) {
    site.scale = layer.getStoredName(parameterOf(scale).getName());
    site.offset = scale.getOffset().convertToDouble();
    site.eps = scale.getData().getDefiningOp<xf::NormalizeOp>().getEps().convertToDouble();
  }
  return site;
}

} // namespace

FailureOr<SplitProgram> splitLayers(Program program, SitesCallback sitesOf) {
  SplitProgram split;
  split.program = split.targets = program;
  split.program.steps.clear();
  split.targets.steps.clear();
  std::map<std::vector<Operation *>, Parts> known;
  for (ProgramStep step : program.steps) {
    SmallVector<FitSite> sites;
    if (step.index)
      sites = sitesOf(step.layer, step.block, *step.index);
    if (sites.empty() && step.block.getBody().getOps<xf::AttentionOp>().empty()) {
      split.program.steps.push_back(step);
      continue;
    }
    std::vector<Operation *> key = {step.block};
    for (const FitSite &site : sites)
      key.push_back(site.first());
    auto [entry, isNew] = known.try_emplace(key);
    if (isNew) {
      FailureOr<Parts> parts = Splitter(program.module, step.block, sites).run();
      if (failed(parts))
        return failure();
      entry->second = std::move(*parts);
    }
    const Parts &parts = entry->second;

    OpBuilder b(step.layer);
    IRMapping values;
    values.map(step.block.getBody().getArguments(), step.layer.getInputs());
    size_t first = split.program.steps.size();
    for (const Part &part : parts.steps) {
      ProgramStep made;
      made.layer = callPart(b, step.layer, part, values);
      made.block = part.block;
      values.map(part.outputs, made.layer.getOutputs());
      split.program.steps.push_back(made);
    }
    split.program.steps.back().index = step.index;
    for (auto [attention, part] : parts.attentions) {
      xf::AttentionOp op = attention;
      split.attentions.push_back({first + part, values.lookup(op.getQuery()),
                                  values.lookup(op.getKey()), values.lookup(op.getValue()),
                                  values.lookup(op.getResult())});
    }
    for (auto [site, target, matrix] : llvm::zip(sites, parts.targets, parts.matrices)) {
      ProgramStep made;
      made.layer = callPart(b, step.layer, target, values);
      made.block = target.block;
      split.targets.steps.push_back(made);
      split.sites.push_back(describe(site, step.layer, values));
      split.sites.back().layer = *step.index;
      split.sites.back().step = first + matrix;
    }
    Operation *yield = step.block.getBody().front().getTerminator();
    for (auto [result, value] : llvm::zip(step.layer.getOutputs(), yield->getOperands()))
      result.replaceAllUsesWith(values.lookup(value));
    step.layer.erase();
  }
  return split;
}

} // namespace ctxc
