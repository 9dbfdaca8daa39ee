// Layers of a mixer alone are put together with the next layer that can absorb the context.
#include "ctxc/Transforms/FoldLayers.h"
#include "FreeName.h"
#include "ctxc/Analysis/Sites.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;

namespace ctxc {
namespace {

/// What decides whether a layer is folded: of its block's structure alone.
struct Role {
  bool readsContext = false;
  bool hasSites = false; ///< ops with a stored parameter outside of the contextual part
};

class Folder {
public:
  explicit Folder(ModuleOp module) : module(module), builder(module.getContext()) {}
  std::vector<FoldedLayers> run(xf::ModelOp model, unsigned startLayer);

private:
  using Run = ArrayRef<xf::LayerOp>;

  Role roleOf(xf::BlockOp block);
  xf::BlockOp blockOf(xf::LayerOp layer) const {
    return SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr());
  }
  SmallVector<Value> inputsOf(Run run) const;
  xf::BlockOp join(Run run);
  xf::LayerOp replace(Run run, xf::BlockOp block);
  SmallVector<xf::BlockOp> blocksOf(Run run) const {
    return llvm::map_to_vector(run, [&](xf::LayerOp layer) { return blockOf(layer); });
  }

  ModuleOp module;
  OpBuilder builder;
  llvm::DenseMap<Operation *, Role> roles;
  /// Joint blocks by what they are made of: the blocks, and which input each operand is.
  std::map<std::vector<std::uintptr_t>, xf::BlockOp> joined;
};

/// The name in a joint block of what a layer, the `distance`-th before the last, calls `name`.
std::string nameIn(size_t distance, StringRef name) {
  std::string full;
  for (size_t i = 0; i < distance; ++i)
    full += "previous.";
  return full + name.str();
}

/// How often `name` says that it is a layer before's.
size_t depthOf(StringRef name) {
  size_t depth = 0;
  while (name.consume_front("previous."))
    ++depth;
  return depth;
}

/// For each layer of a run, what stands before its names in the joint block: a layer's own names
/// may have such prefixes already.
SmallVector<size_t> distancesOf(ArrayRef<xf::BlockOp> blocks) {
  SmallVector<size_t> distances(blocks.size(), 0);
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    size_t depth = 0;
    xf::BlockOp behind = blocks[i + 1];
    for (xf::ParamOp param : behind.getBody().getOps<xf::ParamOp>())
      depth = std::max(depth, depthOf(param.getName()));
    for (xf::SettingOp setting : behind.getBody().getOps<xf::SettingOp>())
      depth = std::max(depth, depthOf(setting.getName()));
    distances[i] = distances[i + 1] + depth + 1;
  }
  return distances;
}

/// Whether layers of `run`, and nothing else, read what `layer` gives.
bool feedsJust(xf::LayerOp layer, ArrayRef<xf::LayerOp> run) {
  return !layer->use_empty() && llvm::all_of(layer->getUsers(), [&](Operation *user) {
    return llvm::is_contained(run, dyn_cast<xf::LayerOp>(user));
  });
}

/// Whether `op` reads parameters and settings alone, and the contextual part alone reads what is
/// made of it: its numbers belong to that part, though no value of a token goes through it.
bool servesContextualPart(Operation *op, const Sites &sites) {
  llvm::SetVector<Operation *> made;
  made.insert(op);
  auto isMade = [&](Value operand) {
    Operation *from = operand.getDefiningOp();
    return from && (isa<xf::ParamOp, xf::SettingOp>(from) || made.contains(from));
  };
  for (size_t i = 0; i < made.size(); ++i) {
    if (!llvm::all_of(made[i]->getOperands(), isMade))
      return false;
    for (Operation *user : made[i]->getUsers())
      if (!sites.inContextualPart(user))
        made.insert(user);
  }
  return true;
}

Role Folder::roleOf(xf::BlockOp block) {
  auto [known, isNew] = roles.try_emplace(block);
  if (!isNew)
    return known->second;
  BlockGraph graph(block);
  ZeroRange zeros(block);
  Bindings bindings;
  Sites sites(graph, zeros, bindings);
  Role role;
  role.readsContext = graph.contextualOps().any();
  role.hasSites = llvm::any_of(sites.all(), [&](const Site &site) {
    return site.param && site.status != SiteStatus::ContextualPart &&
           !servesContextualPart(site.op, sites);
  });
  return known->second = role;
}

/// What the layers of a run read that none of them makes.
SmallVector<Value> Folder::inputsOf(Run run) const {
  llvm::SetVector<Value> inputs;
  for (xf::LayerOp layer : run)
    for (Value input : layer.getInputs())
      if (!llvm::is_contained(run, input.getDefiningOp<xf::LayerOp>()))
        inputs.insert(input);
  return inputs.takeVector();
}

xf::BlockOp Folder::join(Run run) {
  SmallVector<Value> inputs = inputsOf(run);
  std::vector<std::uintptr_t> key;
  for (xf::LayerOp layer : run) {
    key.push_back(reinterpret_cast<std::uintptr_t>(blockOf(layer).getOperation()));
    for (Value input : layer.getInputs()) {
      auto *at = llvm::find(inputs, input);
      bool isInput = at != inputs.end();
      auto *from = llvm::find(run, input.getDefiningOp<xf::LayerOp>());
      key.push_back(isInput);
      key.push_back(isInput ? at - inputs.begin() : from - run.begin());
      key.push_back(isInput ? 0 : cast<OpResult>(input).getResultNumber());
    }
  }
  xf::BlockOp &block = joined[key];
  if (block)
    return block;
  xf::LayerOp lastLayer = run.back();
  xf::BlockOp last = blockOf(lastLayer);
  std::string suffix;
  for (xf::LayerOp layer : run)
    suffix += (suffix.empty() ? "" : "_") + layer.getBlock().str();
  suffix.erase(0, blockOf(run.front()).getSymName().size());
  builder.setInsertionPointAfter(last);
  auto type = builder.getFunctionType(TypeRange(ValueRange(inputs)), last.getResultTypes());
  block = xf::BlockOp::create(
      builder, last.getLoc(), builder.getStringAttr(freeName(module, blockOf(run.front()), suffix)),
      TypeAttr::get(type),
      /*sym_visibility=*/nullptr, /*arg_attrs=*/nullptr, /*res_attrs=*/nullptr);
  Block &body = block.getBody().emplaceBlock();
  SmallVector<size_t> distances = distancesOf(blocksOf(run));
  IRMapping ofModel; // values of the model's body, in the new block
  for (Value input : inputs)
    ofModel.map(input, body.addArgument(input.getType(), input.getLoc()));
  builder.setInsertionPointToStart(&body);
  for (size_t i = 0; i < run.size(); ++i) {
    xf::LayerOp layer = run[i];
    IRMapping values;
    Block &from = blockOf(layer).getBody().front();
    for (auto [argument, input] : llvm::zip_equal(from.getArguments(), layer.getInputs()))
      values.map(argument, ofModel.lookup(input));
    for (Operation &op : from.without_terminator()) {
      Operation *clone = builder.clone(op, values);
      if (auto param = dyn_cast<xf::ParamOp>(clone))
        param.setName(nameIn(distances[i], param.getName()));
      else if (auto setting = dyn_cast<xf::SettingOp>(clone))
        setting.setName(nameIn(distances[i], setting.getName()));
    }
    for (auto [result, value] :
         llvm::zip_equal(layer.getOutputs(), from.getTerminator()->getOperands()))
      ofModel.map(result, values.lookup(value));
  }
  auto outputs =
      llvm::map_to_vector(lastLayer.getOutputs(), [&](Value v) { return ofModel.lookup(v); });
  xf::YieldOp::create(builder, last.getLoc(), outputs);
  return block;
}

xf::LayerOp Folder::replace(Run run, xf::BlockOp block) {
  SmallVector<size_t> distances = distancesOf(blocksOf(run));
  xf::LayerOp last = run.back();
  NamedAttrList settings, bind;
  SmallVector<Attribute> frozen;
  for (size_t i = 0; i < run.size(); ++i) {
    xf::LayerOp layer = run[i];
    size_t distance = distances[i];
    auto add = [&](NamedAttrList &list, DictionaryAttr all) {
      for (NamedAttribute entry : all ? all.getValue() : ArrayRef<NamedAttribute>())
        list.set(nameIn(distance, entry.getName()), entry.getValue());
    };
    add(settings, layer.getSettingsAttr());
    if (distance == 0)
      add(bind, layer.getBindAttr());
    else
      for (xf::ParamOp param : blockOf(layer).getBody().getOps<xf::ParamOp>())
        bind.set(nameIn(distance, param.getName()),
                 builder.getStringAttr(layer.getStoredName(param.getName())));
    if (ArrayAttr names = layer.getFrozenAttr())
      for (Attribute name : names)
        frozen.push_back(
            builder.getStringAttr(nameIn(distance, cast<StringAttr>(name).getValue())));
  }
  builder.setInsertionPoint(last);
  MLIRContext *context = module.getContext();
  auto made = xf::LayerOp::create(
      builder, last.getLoc(), last.getResultTypes(), block.getSymName(), inputsOf(run),
      last.getPrefix(), settings.empty() ? DictionaryAttr() : settings.getDictionary(context),
      bind.empty() ? DictionaryAttr() : bind.getDictionary(context),
      frozen.empty() ? ArrayAttr() : builder.getArrayAttr(frozen));
  last->replaceAllUsesWith(made);
  for (xf::LayerOp layer : llvm::reverse(run))
    layer.erase();
  return made;
}

std::vector<FoldedLayers> Folder::run(xf::ModelOp model, unsigned startLayer) {
  std::vector<FoldedLayers> all;
  llvm::SmallPtrSet<Operation *, 8> old;
  SmallVector<xf::LayerOp> layers, pending;
  llvm::append_range(layers, model.getBody().getOps<xf::LayerOp>());
  unsigned folded = 0; // how many layers fewer there are
  for (auto [number, layer] : llvm::enumerate(layers)) {
    if (number < startLayer)
      continue;
    pending.push_back(layer);
    Role role = roleOf(blockOf(layer));
    if (role.readsContext && !role.hasSites)
      continue;
    Run run = ArrayRef(pending).take_back(1);
    while (run.size() < pending.size() && feedsJust(pending[pending.size() - run.size() - 1], run))
      run = ArrayRef(pending).take_back(run.size() + 1);
    if (role.hasSites && run.size() > 1) {
      xf::BlockOp block = join(run);
      for (xf::BlockOp each : blocksOf(run))
        old.insert(each);
      old.insert(block); // stays where it is called
      if (roleOf(block).hasSites) {
        FoldedLayers entry;
        for (unsigned i = number + 1 - run.size(); i <= number; ++i)
          entry.before.push_back(i);
        folded += run.size() - 1;
        entry.after = number - folded;
        entry.layer = replace(run, block);
        all.push_back(std::move(entry));
      }
    }
    pending.clear();
  }
  for (Operation *block : old)
    if (SymbolTable::symbolKnownUseEmpty(block, module))
      block->erase();
  return all;
}

} // namespace

std::vector<FoldedLayers> foldLayers(ModuleOp module, unsigned startLayer) {
  std::vector<FoldedLayers> folded;
  for (xf::ModelOp model : module.getOps<xf::ModelOp>())
    llvm::append_range(folded, Folder(module).run(model, startLayer));
  return folded;
}

} // namespace ctxc
