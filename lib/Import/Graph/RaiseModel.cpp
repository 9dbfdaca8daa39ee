#include "RaiseModel.h"
#include "JoinExperts.h"
#include "JoinLayers.h"
#include "Raise.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "dialects/XF/Arithmetic.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {

/// Raises one program.
class ModelRaiser {
public:
  ModelRaiser(graph::ProgramOp program, Numbers numbers)
      : program(program), axes(program), numbers(std::move(numbers)),
        builder(program.getContext()) {}

  llvm::Expected<OwningOpRef<ModuleOp>> raise(llvm::StringSet<> *joined);

private:
  /// A layer, and how it meets the rest.
  struct Scope {
    const Layer *layer;
    Parts parts;
    SmallVector<Value> results; ///< what others read
    llvm::DenseSet<Operation *> calls;
    xf::BlockOp block;
    DictionaryAttr bind, settings;
  };

  void findLive();
  void findScopes(const std::vector<Layer> &layers);
  bool isReadOutside(Value value, const Scope &scope) const;
  bool hasTokens() const;
  llvm::Error raiseBlock(Scope &scope);
  llvm::Error fill(Scope &scope, Raiser &raiser);
  llvm::Error raiseModel();
  llvm::Error raiseUnits(Raiser &raiser, const Parts &parts);
  llvm::Error callLayer(Scope &scope, Raiser &raiser);
  void share(Scope &scope);
  void bindInputs(Raiser &raiser);

  graph::ProgramOp program;
  TokenAxes axes;
  Numbers numbers;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  std::optional<Capture> capture;
  std::optional<Rotations> rotations;
  std::vector<Layer> layers;
  std::vector<Scope> scopes;
  llvm::DenseMap<Operation *, Scope *> scopeOf;
  llvm::DenseSet<Operation *> live;    ///< ops that lead to the results that count
  SmallVector<graph::CallOp> outside;  ///< calls that read data and are in no layer
  llvm::StringMap<xf::BlockOp> blocks; ///< by their text
  llvm::StringSet<> shared;            ///< stored names that several layers read, or none alone
};

} // namespace

bool ModelRaiser::hasTokens() const {
  graph::ProgramOp op = program;
  return llvm::any_of(op.getBody().getOps<graph::InputOp>(),
                      [](graph::InputOp input) { return input.getRole() == "token"; });
}

/// The results that count are all of a block's, and the first of a model's: the logits.
void ModelRaiser::findLive() {
  Operation *end = program.getBody().front().getTerminator();
  SmallVector<Operation *> work;
  for (Value result : hasTokens() ? end->getOperands().take_front(1) : end->getOperands())
    work.push_back(result.getDefiningOp());
  live.insert(end);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    auto call = dyn_cast<graph::CallOp>(op);
    if (live.insert(op).second && !(call && TokenAxes::ignoresNumbers(call)))
      for (Value operand : op->getOperands())
        work.push_back(operand.getDefiningOp());
  }
}

/// Whether others read `value` of a scope, and do not compute it for themselves.
bool ModelRaiser::isReadOutside(Value value, const Scope &scope) const {
  Operation *made = value.getDefiningOp();
  return scopeOf.lookup(made) == &scope && llvm::any_of(value.getUsers(), [&](Operation *user) {
           auto call = dyn_cast<graph::CallOp>(user);
           if (!live.contains(user) || (call && TokenAxes::ignoresNumbers(call)))
             return false;
           auto reads = [&](const Scope &other) {
             return &other != &scope && other.calls.contains(user) && !other.calls.contains(made);
           };
           return !scopeOf.contains(user) || llvm::any_of(scopes, reads);
         });
}

void ModelRaiser::findScopes(const std::vector<Layer> &found) {
  scopes.resize(found.size());
  for (auto [scope, layer] : llvm::zip(scopes, found)) {
    scope.layer = &layer;
    for (graph::CallOp call : layer.calls) {
      scope.calls.insert(call);
      if (!layer.borrowed.contains(call))
        scopeOf[call] = &scope;
    }
  }
  for (auto call : program.getBody().getOps<graph::CallOp>())
    if (!scopeOf.contains(call) &&
        llvm::any_of(call.getResults(), [&](Value v) { return axes.isData(v); }))
      outside.push_back(call);
  for (Scope &scope : scopes) {
    for (graph::CallOp call : scope.layer->calls)
      for (Value result : call.getResults())
        if (isReadOutside(result, scope))
          scope.results.push_back(result);
    scope.parts = divide(scope.layer->calls, scope.results, axes);
  }
}

/// The token's id, which each block has for itself.
static bool isId(Value value) {
  auto input = value.getDefiningOp<graph::InputOp>();
  return input && input.getRole() == "token";
}

/// Emits a scope's ops in the order of the program.
llvm::Error ModelRaiser::fill(Scope &scope, Raiser &raiser) {
  for (graph::CallOp call : scope.layer->calls) {
    if (scope.parts.tail.contains(call)) {
      if (llvm::Error error = raiser.raise(call))
        return error;
      continue;
    }
    for (Value result : call.getResults())
      if (scope.parts.mixed.contains(result))
        if (llvm::Error error = raiser.raiseMixed(result, scope.parts, scope.calls))
          return error;
  }
  return llvm::Error::success();
}

/// Erases what only patterns have read.
static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isMemoryEffectFree(&op) && op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}

llvm::Error ModelRaiser::raiseBlock(Scope &scope) {
  StringRef path = scope.layer->path;
  std::string prefix = path.empty() ? "" : (path + ".").str();
  LayerNames names(*scope.layer);
  auto naming = [&](StringRef name) { return names.of(name); };
  SmallVector<Type> inputs, outputs;
  for (Value value : scope.parts.inputs) {
    if (isId(value))
      continue;
    if (!axes.axis(value))
      return makeError("layer " + quoted(path) +
                       " reads a value of several tokens that is made "
                       "outside of it; expected one axis of tokens");
    auto type = tokenType(value, axes);
    if (!type)
      return type.takeError();
    inputs.push_back(*type);
  }
  for (Value value : scope.results) {
    if (!axes.axis(value))
      return makeError("layer " + quoted(path) +
                       " gives others a value of several tokens; "
                       "expected one axis of tokens, or none of its parameters behind it");
    auto type = tokenType(value, axes);
    if (!type)
      return type.takeError();
    outputs.push_back(*type);
  }
  builder.setInsertionPointToEnd(module->getBody());
  std::string name = path.empty() ? "model" : nameOfList(path).str();
  Location loc = scope.results.empty() ? program.getLoc() : scope.results.back().getLoc();
  auto block = xf::BlockOp::create(builder, loc, name, builder.getFunctionType(inputs, outputs),
                                   StringAttr(), ArrayAttr(), ArrayAttr());
  Block &entry = block.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&entry);
  Raiser raiser(builder, axes, naming, *capture, *rotations);
  auto id = RankedTensorType::get({}, builder.getI32Type());
  for (Value value : scope.parts.inputs)
    raiser.bind(value, isId(value)
                           ? Value(xf::TokenOp::create(builder, value.getLoc(), id))
                           : entry.addArgument(inputs[entry.getNumArguments()], value.getLoc()));
  scope.block = block;
  if (llvm::Error error = fill(scope, raiser))
    return error;
  SmallVector<Value> results;
  for (Value value : scope.results)
    results.push_back(raiser.lookup(value));
  xf::YieldOp::create(builder, loc, results);
  eraseUnused(entry);
  SmallVector<NamedAttribute> bound;
  block.walk([&](xf::ParamOp param) {
    if (auto stored = names.storedAs(param.getName()))
      bound.push_back(builder.getNamedAttr(param.getName(), builder.getStringAttr(*stored)));
    if (shared.contains(prefix + param.getName().str()) || shared.contains(param.getName()))
      param.setFrozen(true);
  });
  joinExperts(block, [&](xf::ParamOp param) {
    return !names.storedAs(param.getName()) && !shared.contains(prefix + param.getName().str()) &&
           !shared.contains(param.getName());
  });
  eraseUnused(entry);
  scope.bind = bound.empty() ? DictionaryAttr() : builder.getDictionaryAttr(bound);
  share(scope);
  return llvm::Error::success();
}

/// Takes the block of an earlier layer of the same text, but for the settings of a model's layers.
void ModelRaiser::share(Scope &scope) {
  SmallVector<NamedAttribute> settings;
  if (hasTokens())
    scope.block.walk([&](xf::SettingOp setting) {
      if (isMatrix(setting)) // an output chain is solved through that of the block itself
        return;
      // Those of the same name have the same value.
      auto isKnown = [&](NamedAttribute one) { return one.getName() == setting.getName(); };
      if (llvm::none_of(settings, isKnown))
        settings.push_back(builder.getNamedAttr(setting.getName(), *setting.getValue()));
      setting.removeValueAttr();
    });
  scope.settings = settings.empty() ? DictionaryAttr() : builder.getDictionaryAttr(settings);
  std::string text;
  llvm::raw_string_ostream os(text);
  scope.block->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  auto [known, isNew] = blocks.try_emplace(text, scope.block);
  if (!isNew) {
    scope.block.erase();
    scope.block = known->second;
  } else if (blocks.size() > 1) {
    scope.block.setSymName((scope.block.getSymName() + "_" + Twine(blocks.size())).str());
  }
}

void ModelRaiser::bindInputs(Raiser &raiser) {
  auto id = RankedTensorType::get({}, builder.getI32Type());
  for (auto input : program.getBody().getOps<graph::InputOp>()) {
    if (input.getRole() == "token")
      raiser.bind(input, xf::TokenOp::create(builder, input.getLoc(), id));
    else if (input.getRole() == "position")
      raiser.bind(input, xf::PositionOp::create(builder, input.getLoc(), id));
  }
}

llvm::Error ModelRaiser::callLayer(Scope &scope, Raiser &raiser) {
  SmallVector<Value> inputs;
  for (Value value : scope.parts.inputs)
    if (!isId(value))
      inputs.push_back(raiser.lookup(value));
  std::string prefix = scope.layer->path + ".";
  Location loc = NameLoc::get(builder.getStringAttr(scope.layer->path));
  auto call =
      xf::LayerOp::create(builder, loc, scope.block.getResultTypes(), scope.block.getSymName(),
                          inputs, prefix, scope.settings, scope.bind, ArrayAttr());
  for (auto [value, result] : llvm::zip(scope.results, call.getResults()))
    raiser.bind(value, result);
  return llvm::Error::success();
}

/// Emits layers, and what is outside of them, each when all that it reads is there: the program may
/// have the ops of layers among others.
llvm::Error ModelRaiser::raiseUnits(Raiser &raiser, const Parts &parts) {
  llvm::DenseSet<Operation *> own;
  for (graph::CallOp call : outside)
    own.insert(call);
  auto isThere = [&](Value value) { return !axes.isData(value) || raiser.lookup(value); };
  llvm::DenseSet<Operation *> done;
  llvm::DenseSet<Scope *> called;
  // A model's order is right but for a few ops.
  constexpr unsigned mostRounds = 64;
  for (unsigned round = 0; round < mostRounds; ++round) {
    bool waits = false;
    for (auto call : program.getBody().getOps<graph::CallOp>()) {
      if (Scope *scope = scopeOf.lookup(call)) {
        if (called.contains(scope) || call != scope->layer->calls.back())
          continue;
        if (!llvm::all_of(scope->parts.inputs, isThere)) {
          waits = true;
          continue;
        }
        called.insert(scope);
        if (llvm::Error error = callLayer(*scope, raiser))
          return error;
        continue;
      }
      bool isTail = parts.tail.contains(call);
      bool isMixed = llvm::any_of(call.getResults(),
                                  [&](Value result) { return parts.mixed.contains(result); });
      if ((!isTail && !isMixed) || done.contains(call))
        continue;
      if (isTail && !llvm::all_of(call.getOperands(), isThere)) {
        waits = true;
        continue;
      }
      if (isMixed && !llvm::all_of(call.getResults(), [&](Value result) {
            return !parts.mixed.contains(result) ||
                   llvm::all_of(regionOf(result, parts, own, axes).data, isThere);
          })) {
        waits = true;
        continue;
      }
      done.insert(call);
      llvm::Error error = llvm::Error::success();
      if (isTail)
        error = raiser.raise(call);
      for (Value result : call.getResults())
        if (!error && isMixed && parts.mixed.contains(result))
          error = raiser.raiseMixed(result, parts, own);
      if (error)
        return error;
    }
    if (!waits)
      return llvm::Error::success();
  }
  return makeError("the layers read from each other in an order that cannot be told; expected one "
                   "after the other");
}

llvm::Error ModelRaiser::raiseModel() {
  builder.setInsertionPointToEnd(module->getBody());
  auto model =
      xf::ModelOp::create(builder, program.getLoc(), "program", program.getPositionsAttr());
  builder.setInsertionPointToEnd(&model.getBody().emplaceBlock());
  auto naming = [](StringRef name) { return name.str(); };
  Raiser raiser(builder, axes, naming, *capture, *rotations);
  bindInputs(raiser);
  Value logits = program.getBody().front().getTerminator()->getOperand(0);
  SmallVector<Value> wanted{logits};
  for (Scope &scope : scopes)
    llvm::append_range(wanted, scope.parts.inputs);
  Parts parts = divide(outside, wanted, axes);
  if (llvm::Error error = raiseUnits(raiser, parts))
    return error;
  Value result = raiser.lookup(logits);
  if (!result)
    return makeError("the program's first result does not depend on the tokens");
  xf::YieldOp::create(builder, program.getLoc(), result);
  eraseUnused(model.getBody().front());
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>> ModelRaiser::raise(llvm::StringSet<> *joined) {
  module = ModuleOp::create(program.getLoc());
  capture.emplace(*module, program, axes);
  rotations.emplace(axes, *capture, numbers);
  llvm::Expected<std::vector<Layer>> found = findLayers(program, axes);
  if (!found)
    return found.takeError();
  layers = std::move(*found);
  bool isModel = hasTokens(), isOfLists = !layers.empty();
  if (isModel && layers.empty() && (layers = findModules(program, axes)).empty())
    return makeError("no layers were found: expected modules that join tokens, alone or in a list; "
                     "export one block by itself, with its activations as input");
  // Modules may run again on what they made, as those of lists do.
  if (isModel && !isOfLists)
    if (llvm::Error error = takeSums(layers, program, axes))
      return std::move(error);
  if (layers.empty()) {
    layers.push_back({""});
    for (auto call : program.getBody().getOps<graph::CallOp>())
      if (llvm::any_of(call.getResults(), [&](Value v) { return axes.isData(v); }))
        layers.back().calls.push_back(call);
  }
  findLive();
  if (llvm::Error error = keepLive(layers, live, program))
    return std::move(error);
  borrowCalls(layers, axes);
  for (const Layer &layer : layers)
    if (joined && (layer.joined || !layer.others.empty()))
      joined->insert(layer.path);
  findScopes(layers);
  // Without a model nothing says which tensors several layers have in common.
  if (!isModel)
    for (auto stored : program.getBody().getOps<graph::StoredOp>()) {
      llvm::DenseSet<Scope *> users;
      for (Operation *user : stored->getUsers())
        users.insert(scopeOf.lookup(user));
      if (users.size() > 1)
        shared.insert(stored.getName());
    }
  for (Scope &scope : scopes)
    if (llvm::Error error = raiseBlock(scope))
      return std::move(error);
  if (isModel)
    if (llvm::Error error = raiseModel())
      return std::move(error);
  eraseUnusedFunctions(*module);
  if (FloatType arithmetic = arithmeticOf(program); !arithmetic.isF32())
    (*module)->setAttr(xf::arithmeticName, TypeAttr::get(arithmetic));
  if (failed(mlir::verify(*module)))
    return makeError("the raised module does not verify; see the messages above");
  return std::move(module);
}

llvm::Expected<OwningOpRef<ModuleOp>>
ctxc::pt2::raiseProgram(graph::ProgramOp program, Numbers numbers, llvm::StringSet<> *joined) {
  return ModelRaiser(program, std::move(numbers)).raise(joined);
}
