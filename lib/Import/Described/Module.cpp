// From a description's program to a module for a checkpoint: parameters get the types that are
// stored, and layers that store a parameter as different types get blocks of their own.
#include "../HuggingFace/Architecture.h"
#include "../ParseText.h"
#include "Described.h"
#include "Instance.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/SliceName.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

using Types = SmallVector<mlir::RankedTensorType>;

class TypeSetter {
public:
  /// `computed`: the names of what the model's class computes, and no checkpoint has;
  /// `isWithout` is told of them.
  TypeSetter(StoredTensors &tensors, const json::Array *computed,
             function_ref<void(StringRef)> isWithout, mlir::MLIRContext *context)
      : tensors(tensors), computed(computed), isWithout(isWithout), context(context) {}

  void setModel(xf::ModelOp model, mlir::ModuleOp module);

private:
  mlir::RankedTensorType stored(StringRef name, xf::ParamOp param) {
    auto type = cast<mlir::RankedTensorType>(param.getType());
    if (computed && llvm::is_contained(*computed, json::Value(param.getName())) &&
        !tensors.has(name)) {
      isWithout(name);
      return type;
    }
    return isBankName(name) ? tensors.bankType(name, type.getShape(), context)
                            : tensors.type(name, type.getShape(), context);
  }
  Types typesOf(xf::BlockOp block, xf::LayerOp layer);
  static void set(mlir::Value value, mlir::Type element);

  StoredTensors &tensors;
  const json::Array *computed;
  function_ref<void(StringRef)> isWithout;
  mlir::MLIRContext *context;
};

mlir::RankedTensorType typeOf(mlir::Value value) {
  return cast<mlir::RankedTensorType>(value.getType());
}

} // namespace

/// A parameter that is cut or seen in another shape keeps its type of elements.
void TypeSetter::set(mlir::Value value, mlir::Type element) {
  if (typeOf(value).getElementType() == element)
    return;
  value.setType(mlir::RankedTensorType::get(typeOf(value).getShape(), element));
  for (mlir::Operation *user : value.getUsers())
    if (isa<xf::ReshapeOp, xf::SliceOp, xf::TransposeOp>(user))
      set(user->getResult(0), element);
}

Types TypeSetter::typesOf(xf::BlockOp block, xf::LayerOp layer) {
  Types types;
  mlir::DictionaryAttr bind = layer.getBindAttr();
  block.walk([&](xf::ParamOp param) {
    auto bound = bind ? bind.getAs<mlir::StringAttr>(param.getName()) : mlir::StringAttr();
    std::string name = bound ? bound.str() : (layer.getPrefix() + param.getName()).str();
    types.push_back(stored(name, param));
  });
  return types;
}

void TypeSetter::setModel(xf::ModelOp model, mlir::ModuleOp module) {
  model.walk(
      [&](xf::ParamOp param) { set(param, stored(param.getName(), param).getElementType()); });
  StringMap<SmallVector<std::pair<Types, xf::BlockOp>>> versions;
  mlir::OpBuilder builder(context);
  unsigned count = llvm::range_size(module.getOps<xf::BlockOp>());
  model.walk([&](xf::LayerOp layer) {
    auto block = module.lookupSymbol<xf::BlockOp>(layer.getBlock());
    Types types = typesOf(block, layer);
    auto &known = versions[layer.getBlock()];
    auto *found = llvm::find_if(known, [&](auto &version) { return version.first == types; });
    if (found != known.end()) {
      layer.setBlock(found->second.getSymName());
      return;
    }
    // The first version is the block itself, whose parameters get their types at the end.
    if (!known.empty()) {
      builder.setInsertionPoint(model);
      block = cast<xf::BlockOp>(builder.clone(*block));
      xf::BlockOp first = *module.getOps<xf::BlockOp>().begin();
      std::string stem = first.getSymName().str();
      block.setSymName(stem + "_" + std::to_string(++count));
      layer.setBlock(block.getSymName());
    }
    known.push_back({std::move(types), block});
  });
  for (auto &entry : versions)
    for (auto &[types, block] : entry.second) {
      size_t at = 0;
      block.walk(
          [&, &types = types](xf::ParamOp param) { set(param, types[at++].getElementType()); });
    }
}

/// The name that a value has in the text, then `file`.
static mlir::Location placed(mlir::Location loc, mlir::Location file) {
  auto name = dyn_cast<mlir::NameLoc>(loc);
  return name ? mlir::Location(mlir::NameLoc::get(name.getName(), file)) : file;
}

static void placeAll(mlir::ModuleOp module, StringRef config) {
  mlir::Location file = mlir::FileLineColLoc::get(module.getContext(), config, 1, 1);
  module.walk([&](mlir::Operation *op) {
    op->setLoc(placed(op->getLoc(), file));
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        for (mlir::BlockArgument argument : block.getArguments())
          argument.setLoc(placed(argument.getLoc(), file));
  });
  auto named = [&](StringRef name) {
    return mlir::NameLoc::get(mlir::StringAttr::get(module.getContext(), name), file);
  };
  StringMap<bool> placed;
  module.walk([&](xf::LayerOp layer) {
    StringRef prefix = layer.getPrefix().drop_back();
    if (placed.try_emplace(layer.getBlock()).second)
      module.lookupSymbol<xf::BlockOp>(layer.getBlock())->setLoc(named(prefix));
    layer->setLoc(
        mlir::NameLoc::get(cast<mlir::NameLoc>(layer->getLoc()).getName(), named(prefix)));
  });
}

/// The head of a description's program: what gives logits from the last hidden state.
struct Head {
  std::string stem;             ///< what leads the names of the base model's parameters
  xf::LinearOp first;           ///< its first product; null where there is none
  SmallVector<xf::ParamOp> own; ///< its parameters that are not the base model's
};

/// The head has the names that do not begin as the layers' do, and the embedding where it is tied.
static Head headOf(xf::ModelOp model) {
  Head head;
  SmallVector<xf::LayerOp> layers(model.getOps<xf::LayerOp>());
  SmallVector<xf::ParamOp> params(model.getOps<xf::ParamOp>());
  if (layers.empty() || params.empty())
    return head;
  StringRef prefix = layers.front().getPrefix();
  head.stem = prefix.take_front(prefix.find('.') + 1).str();
  auto isTable = [](xf::ParamOp param) {
    return llvm::any_of(param->getUsers(), llvm::IsaPred<xf::EmbedOp>);
  };
  auto isOwn = [&](xf::ParamOp param) {
    return !isTable(param) && !param.getName().starts_with(head.stem);
  };
  for (auto linear : model.getOps<xf::LinearOp>()) {
    auto param = linear.getWeight().getDefiningOp<xf::ParamOp>();
    if (!head.first && param && (isOwn(param) || isTable(param)))
      head.first = linear;
  }
  llvm::copy_if(params, std::back_inserter(head.own), isOwn);
  return head;
}

/// Ends the model with its last hidden state. Only the head scales it.
static void dropHead(xf::ModelOp model, const Head &head) {
  xf::LinearOp first = head.first;
  mlir::Value state = first.getData();
  while (auto times = state.getDefiningOp<xf::TimesOp>())
    state = times.getData();
  mlir::Block &body = model.getBody().front();
  body.getTerminator()->setOperand(0, state);
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!isa<xf::LayerOp, xf::YieldOp>(op) && op.use_empty())
      op.erase();
  model->setAttr(headlessName, mlir::UnitAttr::get(model.getContext()));
}

/// A table that a description has under the tied head's name is most often stored under its own.
static void takeTable(xf::ModelOp model, const Head &head, const StoredTensors &tensors) {
  StringSet<> known;
  for (xf::ParamOp param : model.getOps<xf::ParamOp>())
    known.insert(param.getName());
  for (xf::ParamOp param : model.getOps<xf::ParamOp>()) {
    if (param.getName().starts_with(head.stem) || tensors.has(param.getName()) ||
        llvm::none_of(param->getUsers(), llvm::IsaPred<xf::EmbedOp>))
      continue;
    auto type = cast<mlir::RankedTensorType>(param.getType());
    std::string stored = tensors.onlyOne(type.getShape(), [&](StringRef name) {
      return !known.contains(name) && !known.contains(head.stem + name.str());
    });
    if (!stored.empty())
      param.setName((StringRef(stored).starts_with(head.stem) ? "" : head.stem) + stored);
  }
}

/// Leaves out the leading parts of names that a checkpoint of the bare model does not have.
static void takeStem(xf::ModelOp model, const StoredTensors &tensors) {
  SmallVector<xf::ParamOp> params(model.getOps<xf::ParamOp>());
  SmallVector<xf::LayerOp> layers(model.getOps<xf::LayerOp>());
  if (params.empty() || layers.empty() || tensors.has(params.front().getName()))
    return;
  StringRef table = params.front().getName(), prefix = layers.front().getPrefix();
  size_t stem = 0;
  do {
    stem = prefix.find('.', stem) + 1;
    if (!stem || prefix.drop_front(stem).count('.') < 2 ||
        !table.starts_with(prefix.take_front(stem)))
      return;
  } while (!tensors.has(table.drop_front(stem)));
  std::string front = prefix.take_front(stem).str();
  auto shorter = [&](StringRef name) {
    name.consume_front(front);
    return mlir::StringAttr::get(model.getContext(), name);
  };
  for (xf::ParamOp param : params)
    param.setNameAttr(shorter(param.getName()));
  for (xf::LayerOp layer : layers)
    layer.setPrefixAttr(shorter(layer.getPrefix()));
}

/// Where the head is the embedding, and a checkpoint has the head's tensor: the only one is both,
/// and of two with different numbers each is itself, as transformers does it. Whether it was so.
static bool takeStoredHead(xf::ModelOp model, const StoredTensors &tensors) {
  constexpr StringLiteral head = "lm_head.weight";
  for (auto table : model.getOps<xf::ParamOp>()) {
    auto isUser = [](mlir::Operation *user) { return isa<xf::LinearOp>(user); };
    auto isEmbedding = [](mlir::Operation *user) { return isa<xf::EmbedOp>(user); };
    if (!tensors.has(head) || llvm::none_of(table->getUsers(), isEmbedding) ||
        llvm::none_of(table->getUsers(), isUser))
      continue;
    if (!tensors.has(table.getName()))
      table.setName(head);
    if (tensors.equal(head, table.getName()) || table.getName() == head)
      return false;
    mlir::OpBuilder builder(model.getContext());
    builder.setInsertionPointAfter(table);
    auto own = cast<xf::ParamOp>(builder.clone(*table));
    own.setName(head);
    table->getResult(0).replaceUsesWithIf(
        own->getResult(0), [&](mlir::OpOperand &use) { return isUser(use.getOwner()); });
    return true;
  }
  return false;
}

/// Says the equations of numbers that are stored in another form than the family's classes do it.
static void takeConventions(mlir::ModuleOp module, const StorageConventions &conventions) {
  module.walk([&](xf::RotaryOp rotary) {
    if (conventions.interleavedHeads)
      rotary.setStyle(xf::RotaryStyle::interleaved);
  });
  module.walk([&](xf::ScaleOp scale) {
    if (conventions.wholeScales && scale.getScale().getDefiningOp<xf::ParamOp>())
      scale.setOffset(APFloat(0.0f));
  });
}

/// Whether a tensor outside of the layers is stored with the same numbers under another name.
static bool isSecond(StringRef name, mlir::ModuleOp module, const StoredTensors &tensors) {
  bool found = false;
  module.walk([&](xf::ParamOp param) {
    found |= isa<xf::ModelOp>(param->getParentOp()) && tensors.equal(name, param.getName());
  });
  return found;
}

mlir::OwningOpRef<mlir::ModuleOp>
described::importConfig(StringRef description, const json::Object &config, ConfigReader &reader,
                        StringRef path, StoredTensors &tensors, bool needWeights,
                        Problems &problems, mlir::MLIRContext &context,
                        std::vector<std::string> &warnings) {
  json::Object described = *cantFail(json::parse(description)).getAsObject(); // one of ours
  std::string program = programOf(described, reader, problems, context);
  if (!problems.empty())
    return nullptr;
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(program, "description"), SMLoc());
  mlir::OwningOpRef<mlir::ModuleOp> module = parseText(sources, path, context);
  if (!module || module->getOps<xf::ModelOp>().empty()) {
    problems.add(path + ": its description gives no valid program; see the messages above");
    return nullptr;
  }
  xf::ModelOp model = *module->getOps<xf::ModelOp>().begin();
  Task task = taskOf(config);
  Head head = headOf(model);
  auto isStored = [&](xf::ParamOp param) { return tensors.has(param.getName()); };
  bool withHead =
      !head.first || readsHead(task, tensors, llvm::any_of(head.own, isStored), head.own.empty());
  takeTable(model, head, tensors);
  takeStem(model, tensors);
  if (!withHead)
    dropHead(model, head);
  if (takeStoredHead(model, tensors))
    warnings.push_back(ownHeadWarning(path));
  takeConventions(*module, tensors.conventions());
  auto isWithout = [&](StringRef name) {
    if (needWeights)
      problems.add(path + ": has no numbers of " + quoted(name) +
                   ", which the model's class computes; expected a program by python -m "
                   "ctxc.export (docs/check-your-architecture.md)");
  };
  TypeSetter(tensors, described.getArray("computed"), isWithout, &context).setModel(model, *module);
  tensors.rename(*module);
  placeAll(*module, path);
  OtherHead other(task, withHead, head.stem);
  tensors.finish([&](StringRef name) {
    // A pooler is of another task.
    return name.ends_with("rotary_emb.inv_freq") || matchesPattern("*pooler.dense.*", name) ||
           isSecond(name, *module, tensors) || other.takes(name);
  });
  warnings.push_back(other.warning(config, path));
  return module;
}
