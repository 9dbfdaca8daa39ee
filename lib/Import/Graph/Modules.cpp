#include "Layers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// Whether a call makes numbers of tokens, as an embedding does.
static bool readsTokens(graph::CallOp call, const TokenAxes &axes) {
  auto isOf = [&](Value value, bool floats) {
    auto type = dyn_cast<graph::SymbolicType>(value.getType());
    return axes.isData(value) && type && isa<FloatType>(type.getElementType()) == floats;
  };
  return llvm::any_of(call.getResults(), [&](Value v) { return isOf(v, true); }) &&
         llvm::any_of(call.getOperands(), [&](Value v) { return isOf(v, false); }) &&
         llvm::none_of(call.getOperands(), [&](Value v) { return isOf(v, true); });
}

/// Whether `path` is `module`, or a part of it.
static bool isWithin(StringRef path, StringRef module) {
  return path.consume_front(module) && (path.empty() || path.front() == '.');
}

namespace {
/// The calls between two values through which all goes that later calls read.
struct Stretch {
  ArrayRef<graph::CallOp> calls;
  SmallVector<StringRef> modules; ///< those that join tokens, in order
};

class Modules {
public:
  Modules(graph::ProgramOp program, const TokenAxes &axes) : axes(axes) {
    for (auto call : program.getBody().getOps<graph::CallOp>())
      if (llvm::any_of(call.getResults(), [&](Value v) { return axes.isData(v); }))
        calls.push_back(call);
  }

  std::vector<Layer> find();

private:
  bool findJoining();
  void findStretches();
  bool addsBranch(ArrayRef<graph::CallOp> of) const;
  bool readsAny(graph::CallOp call, const llvm::DenseSet<Operation *> &of) const {
    return llvm::any_of(call.getOperands(),
                        [&](Value operand) { return of.contains(operand.getDefiningOp()); });
  }
  void joinParallel(const Stretch &stretch);
  StringRef moduleOf(graph::CallOp call) const;
  void give(const Stretch &stretch, StringRef module);

  const TokenAxes &axes;
  std::vector<graph::CallOp> calls; ///< those that read data
  std::vector<Stretch> stretches;
  SmallVector<StringRef> modules;         ///< those that join tokens, in order
  llvm::StringSet<> alone;                ///< those of them that join tokens in their own forward
  llvm::EquivalenceClasses<StringRef> in; ///< modules of one layer, side by side
  llvm::DenseMap<Operation *, StringRef>
      given; ///< calls that no module has, by that of their layer
};
} // namespace

/// False where a module with an embedding joins tokens itself.
bool Modules::findJoining() {
  llvm::StringSet<> whole; // modules that have more than layers
  for (graph::CallOp call : calls)
    if (readsTokens(call, axes))
      for (StringRef path = call.getPath(); !path.empty();
           path = path.contains('.') ? path.rsplit('.').first : "")
        whole.insert(path);
  for (graph::CallOp call : calls) {
    StringRef path = call.getPath();
    if (axes.mixing(call) == Mixing::None || path.empty())
      continue;
    size_t end = path.find('.');
    while (whole.contains(path.take_front(end)) && end < path.size())
      end = path.find('.', end + 1);
    StringRef module = path.take_front(end);
    if (whole.contains(module))
      return false;
    if (!llvm::is_contained(modules, module)) {
      modules.push_back(module);
      in.insert(module);
    }
    if (module == path)
      alone.insert(module);
  }
  return true;
}

StringRef Modules::moduleOf(graph::CallOp call) const {
  auto found =
      llvm::find_if(modules, [&](StringRef each) { return isWithin(call.getPath(), each); });
  return found == modules.end() ? StringRef() : *found;
}

void Modules::findStretches() {
  llvm::DenseMap<Operation *, size_t> last; // the call that reads a call's results last
  for (auto [i, call] : llvm::enumerate(calls))
    for (Value operand : call.getOperands())
      if (Operation *from = operand.getDefiningOp())
        last[from] = i;
  size_t begin = 0, reach = 0;
  for (auto [i, call] : llvm::enumerate(calls)) {
    if ((reach <= i && call.getNumResults() == 1) || i + 1 == calls.size()) {
      Stretch made{ArrayRef(calls).slice(begin, i + 1 - begin), {}};
      for (graph::CallOp each : made.calls)
        if (StringRef module = moduleOf(each); !module.empty())
          if (!llvm::is_contained(made.modules, module))
            made.modules.push_back(module);
      stretches.push_back(std::move(made));
      begin = i + 1;
    }
    reach = std::max(reach, last.lookup(call));
  }
}

/// Whether a call joins what parameters have made of a value with one that they have not changed: a
/// norm has no such call, nor has a head.
bool Modules::addsBranch(ArrayRef<graph::CallOp> of) const {
  llvm::DenseSet<Operation *> own(llvm::from_range, of), changed;
  for (graph::CallOp call : of) {
    auto data =
        llvm::make_filter_range(call.getOperands(), [&](Value v) { return axes.isData(v); });
    size_t made =
        llvm::count_if(data, [&](Value v) { return changed.contains(v.getDefiningOp()); });
    if (made && made < size_t(llvm::range_size(data)))
      return true;
    if (made || llvm::any_of(call.getOperands(), [&](Value v) { return isOfParameter(v, axes); }))
      changed.insert(call);
  }
  return false;
}

/// Modules of which none reads what another one gives are one layer: attention beside a recurrence.
void Modules::joinParallel(const Stretch &stretch) {
  llvm::DenseMap<Operation *, llvm::SmallDenseSet<StringRef, 4>> behind;
  llvm::SmallDenseSet<StringRef, 4> later; // modules that read what another one gives
  for (graph::CallOp call : stretch.calls) {
    StringRef module = moduleOf(call);
    auto &own = behind[call];
    for (Value operand : call.getOperands())
      if (auto from = behind.find(operand.getDefiningOp()); from != behind.end())
        own.insert(from->second.begin(), from->second.end());
    if (module.empty())
      continue;
    if (llvm::any_of(own, [&](StringRef each) { return each != module; }))
      later.insert(module);
    own.insert(module);
  }
  for (StringRef module : stretch.modules)
    if (later.empty())
      in.unionSets(stretch.modules.front(), module);
}

/// Gives the layer of `module` what no module has of a stretch and what is made of activations.
void Modules::give(const Stretch &stretch, StringRef module) {
  llvm::DenseSet<Operation *> made;
  if (stretch.calls.front() != calls.front())
    made.insert(graph::CallOp(*std::prev(stretch.calls.begin())));
  for (graph::CallOp call : stretch.calls) {
    bool isOwn = !moduleOf(call).empty();
    if (!isOwn && !readsAny(call, made))
      continue;
    made.insert(call);
    if (!isOwn)
      given[call] = module;
  }
}

std::vector<Layer> Modules::find() {
  if (!findJoining())
    return {};
  findStretches();
  for (const Stretch &stretch : stretches)
    joinParallel(stretch);
  StringRef before;
  SmallVector<const Stretch *> behind; // the module `before`, of no module that joins tokens
  for (const Stretch &stretch : stretches) {
    if (stretch.modules.empty()) {
      behind.push_back(&stretch);
      if (!before.empty() && addsBranch(stretch.calls))
        while (!behind.empty())
          give(*behind.pop_back_val(), before);
      continue;
    }
    behind.clear();
    before = stretch.modules.back();
    bool isOne = llvm::all_of(stretch.modules,
                              [&](StringRef each) { return in.isEquivalent(each, before); });
    if (isOne)
      give(stretch, before);
    for (StringRef module : stretch.modules) {
      SmallVector<graph::CallOp> own;
      llvm::copy_if(stretch.calls, std::back_inserter(own),
                    [&](graph::CallOp call) { return moduleOf(call) == module; });
      // Attention by itself is no layer, and nothing says what else belongs to it.
      if (!isOne && alone.contains(module) && !addsBranch(own))
        return {};
    }
  }
  llvm::MapVector<StringRef, Layer> layers;
  for (StringRef module : modules)
    if (Layer &layer = layers[in.getLeaderValue(module)]; layer.path.empty())
      layer.path = module.str();
  for (graph::CallOp call : calls) {
    StringRef module = moduleOf(call);
    if (module.empty() && (module = given.lookup(call)).empty())
      continue;
    Layer &layer = layers[in.getLeaderValue(module)];
    layer.calls.push_back(call);
    layer.joined |= given.contains(call);
  }
  std::vector<Layer> found;
  for (auto &[leader, layer] : layers)
    found.push_back(std::move(layer));
  return found;
}

std::vector<Layer> ctxc::pt2::findModules(graph::ProgramOp program, const TokenAxes &axes) {
  return Modules(program, axes).find();
}
