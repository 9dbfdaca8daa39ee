#include "JoinLayers.h"
#include "SameValues.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

static StringRef listOf(const Layer &layer) { return StringRef(layer.path).rsplit('.').first; }
static StringRef numberOf(const Layer &layer) { return StringRef(layer.path).rsplit('.').second; }
static StringRef parentOf(StringRef list) {
  return list.contains('.') ? list.rsplit('.').first : StringRef();
}

static void sortCalls(Layer &layer) {
  llvm::sort(layer.calls,
             [](graph::CallOp a, graph::CallOp b) { return a != b && a->isBeforeInBlock(b); });
}

std::string LayerNames::of(StringRef name) {
  StringRef own = name, path = layer.path;
  if (path.empty() || (own.consume_front(path) && own.consume_front(".")))
    return own.str();
  if (name == path)
    return "itself";
  for (StringRef part : layer.others)
    if (own = name; own.consume_front(part) && own.consume_front(".")) {
      std::string ofPart = (nameOfList(part) + "." + own).str();
      stored[ofPart] = name.str();
      return ofPart;
    }
  stored[name] = name.str();
  return name.str();
}

std::optional<StringRef> LayerNames::storedAs(StringRef name) const {
  auto found = stored.find(name);
  return found == stored.end() ? std::nullopt : std::optional<StringRef>(found->second);
}

//===----------------------------------------------------------------------===//
// Lists side by side
//===----------------------------------------------------------------------===//

/// Whether the elements of two lists run in turn.
static bool takesTurns(ArrayRef<Layer *> a, ArrayRef<Layer *> b) {
  auto isBefore = [](const Layer *x, const Layer *y) {
    return graph::CallOp(x->calls.front())->isBeforeInBlock(graph::CallOp(y->calls.front()));
  };
  bool isFirst = isBefore(a.front(), b.front());
  for (size_t i = 0; i < a.size(); ++i) {
    const Layer *first = isFirst ? a[i] : b[i], *second = isFirst ? b[i] : a[i];
    if (numberOf(*a[i]) != numberOf(*b[i]) || !isBefore(first, second) ||
        (i + 1 < a.size() && !isBefore(second, isFirst ? a[i + 1] : b[i + 1])))
      return false;
  }
  return true;
}

/// Whether what `part` gives is added to what others give: not so of a head.
static bool isAdded(const Layer &part, const TokenAxes &axes) {
  llvm::DenseSet<Operation *> own(llvm::from_range, part.calls);
  return llvm::any_of(part.calls, [&](graph::CallOp call) {
    return llvm::any_of(call->getUsers(), [&](Operation *user) {
      auto sum = dyn_cast<graph::CallOp>(user);
      return sum && !own.contains(sum) && llvm::any_of(sum.getOperands(), [&](Value other) {
               return axes.isData(other) && !own.contains(other.getDefiningOp());
             });
    });
  });
}

void ctxc::pt2::joinLists(std::vector<Layer> &layers, const llvm::StringSet<> &mixing,
                          graph::ProgramOp program, const TokenAxes &axes) {
  llvm::MapVector<StringRef, SmallVector<Layer *>> lists;
  for (Layer &layer : layers)
    lists[listOf(layer)].push_back(&layer);
  llvm::StringSet<> joined;
  for (auto &[leader, own] : lists) {
    if (!mixing.contains(leader) || joined.contains(leader))
      continue;
    for (auto &[other, parts] : lists) {
      bool isIt = other != leader && !joined.contains(other) &&
                  parentOf(other) == parentOf(leader) && parts.size() == own.size() &&
                  takesTurns(own, parts) && (own.size() > 1 || isAdded(*parts.front(), axes));
      if (!isIt)
        continue;
      joined.insert(other);
      for (auto [layer, part] : llvm::zip_equal(own, parts)) {
        layer->others.push_back(part->path);
        llvm::append_range(layer->calls, part->calls);
        sortCalls(*layer);
      }
    }
  }
  llvm::erase_if(layers, [&](const Layer &layer) {
    return joined.contains(listOf(layer)) || !mixing.contains(listOf(layer));
  });
}

//===----------------------------------------------------------------------===//
// Layers that run several times
//===----------------------------------------------------------------------===//

/// Whether `calls` are those of several runs of `count` calls each: with the same arguments and
/// stored tensors, and in each run the same values of its own.
static bool isRepeated(ArrayRef<graph::CallOp> calls, size_t count, const TokenAxes &axes) {
  llvm::DenseMap<Operation *, size_t> at;
  for (auto [i, call] : llvm::enumerate(calls))
    at[call] = i;
  // Where a value of the run is made, counted from its begin.
  auto ownPlace = [&](Value value, size_t run) -> std::optional<size_t> {
    auto found = at.find(value.getDefiningOp());
    if (found == at.end() || found->second / count != run)
      return std::nullopt;
    return found->second % count;
  };
  for (size_t i = count; i < calls.size(); ++i) {
    graph::CallOp call = calls[i], first = calls[i % count];
    if (call.getTarget() != first.getTarget() || call.getArguments() != first.getArguments() ||
        call->getNumOperands() != first->getNumOperands() ||
        call->getResultTypes() != first->getResultTypes())
      return false;
    for (auto [own, other] : llvm::zip(call.getOperands(), first.getOperands())) {
      if (axes.isData(own) != axes.isData(other) ||
          (axes.isData(own) ? ownPlace(own, i / count) != ownPlace(other, 0)
                            : !areSame(own, other)))
        return false;
    }
  }
  return true;
}

/// The ops that the program's results need, each behind its operands, a first operand's before a
/// second one's: an order that what the ops compute decides, and not where they are written.
static llvm::DenseMap<Operation *, size_t> orderOfOperands(graph::ProgramOp program) {
  llvm::DenseMap<Operation *, size_t> order;
  llvm::DenseSet<Operation *> seen;
  SmallVector<std::pair<Operation *, unsigned>> open; // with the operand that comes next
  open.push_back({program.getBody().front().getTerminator(), 0});
  while (!open.empty()) {
    auto &[op, next] = open.back();
    if (next == op->getNumOperands()) {
      order.try_emplace(op, order.size());
      open.pop_back();
      continue;
    }
    Operation *operand = op->getOperand(next++).getDefiningOp();
    if (operand && seen.insert(operand).second)
      open.push_back({operand, 0});
  }
  return order;
}

/// How many calls a run has; all of them, where they are those of one.
static size_t callsOfRun(ArrayRef<graph::CallOp> calls, const TokenAxes &axes) {
  size_t count = 1;
  while (count < calls.size() && (calls.size() % count || !isRepeated(calls, count, axes)))
    ++count;
  return count;
}

/// Each run of a layer is a layer, of the same path.
static void splitRuns(std::vector<Layer> &layers, graph::ProgramOp program, const TokenAxes &axes) {
  const llvm::DenseMap<Operation *, size_t> order = orderOfOperands(program);
  std::vector<Layer> all;
  for (Layer &layer : layers) {
    std::vector<graph::CallOp> calls = layer.calls;
    llvm::sort(calls, [&](graph::CallOp a, graph::CallOp b) {
      const size_t first = order.lookup(a), second = order.lookup(b);
      return first != second ? first < second : a != b && a->isBeforeInBlock(b);
    });
    size_t count = callsOfRun(calls, axes);
    if (count == calls.size()) { // ops that no value joins may come in another order in each run
      calls = layer.calls;
      count = callsOfRun(calls, axes);
    }
    for (size_t begin = 0; begin < calls.size(); begin += count) {
      all.push_back(layer);
      all.back().calls.assign(calls.begin() + begin, calls.begin() + begin + count);
      sortCalls(all.back());
    }
  }
  llvm::sort(all, [](const Layer &a, const Layer &b) {
    return a.calls.front() != b.calls.front() &&
           graph::CallOp(a.calls.front())->isBeforeInBlock(graph::CallOp(b.calls.front()));
  });
  layers = std::move(all);
}

//===----------------------------------------------------------------------===//
// Sums that the parent writes
//===----------------------------------------------------------------------===//

namespace {
class Sums {
public:
  Sums(std::vector<Layer> &layers, graph::ProgramOp program, const TokenAxes &axes)
      : layers(layers), program(program), axes(axes) {
    for (Layer &layer : layers)
      for (graph::CallOp call : layer.calls)
        layerOf[call] = &layer;
  }

  llvm::Error takeBetween(Layer &layer);
  void takeBehind();
  void takeBefore();

private:
  bool isOf(Operation *op, const Layer &layer) const {
    auto found = layerOf.find(op);
    return found != layerOf.end() && found->second == &layer;
  }
  bool leadsOn(Operation *op) const;
  std::vector<graph::CallOp> sumsOf(const Layer &layer, ArrayRef<graph::CallOp> before) const;
  void take(Layer &layer, ArrayRef<graph::CallOp> calls);

  std::vector<Layer> &layers;
  graph::ProgramOp program;
  const TokenAxes &axes;
  llvm::DenseMap<Operation *, Layer *> layerOf;
};
} // namespace

void Sums::take(Layer &layer, ArrayRef<graph::CallOp> calls) {
  for (graph::CallOp call : calls) {
    layer.calls.push_back(call);
    layerOf[call] = &layer;
  }
  layer.joined |= !calls.empty();
  sortCalls(layer);
}

/// What is made of a layer's values by other ops, and which of its own ops read again.
llvm::Error Sums::takeBetween(Layer &layer) {
  llvm::DenseSet<Operation *> behind;
  SmallVector<Operation *> work;
  for (Operation *op = layer.calls.front(); op != layer.calls.back()->getNextNode();
       op = op->getNextNode()) {
    // zeros_like reads sizes alone.
    if (llvm::none_of(op->getResults(), [&](Value v) { return axes.isData(v); }))
      continue;
    bool isOwn = isOf(op, layer);
    for (Value operand : op->getOperands()) {
      Operation *from = operand.getDefiningOp();
      if (isOwn && behind.contains(from))
        work.push_back(from);
      else if (!isOwn && (isOf(from, layer) || behind.contains(from)))
        behind.insert(op);
    }
  }
  std::vector<graph::CallOp> between;
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!behind.contains(op) || !seen.insert(op).second)
      continue;
    if (layerOf.contains(op))
      return makeError("layer " + quoted(layer.path) +
                       " runs more than once for a token, each time on what it made before; "
                       "expected layers that run once: export such a layer by itself, with its "
                       "activations as input, for the verdict on one of its runs");
    between.push_back(cast<graph::CallOp>(op));
    for (Value operand : op->getOperands())
      work.push_back(operand.getDefiningOp());
  }
  take(layer, between);
  return llvm::Error::success();
}

/// Whether a layer reads what is made of `op` by ops of none.
bool Sums::leadsOn(Operation *op) const {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> work{op};
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers()) {
      if (layerOf.contains(user))
        return true;
      if (seen.insert(user).second)
        work.push_back(user);
    }
  return false;
}

/// Ops of no layer that join what the layer gives, or one of it and what it reads; and those of one
/// of these values alone, before the next layer, or as they are `before` in an earlier one.
std::vector<graph::CallOp> Sums::sumsOf(const Layer &layer, ArrayRef<graph::CallOp> before) const {
  llvm::DenseSet<Operation *> own(llvm::from_range, layer.calls);
  llvm::DenseSet<Value> known; // what the layer reads and gives
  for (graph::CallOp call : layer.calls) {
    for (Value operand : call.getOperands())
      known.insert(operand);
    for (Value result : call.getResults())
      known.insert(result);
  }
  std::vector<graph::CallOp> sums;
  for (Operation *op = layer.calls.front(); op; op = op->getNextNode()) {
    auto call = dyn_cast<graph::CallOp>(op);
    if (!call || layerOf.contains(op) || axes.mixing(call) != Mixing::None ||
        !llvm::all_of(call.getOperands(), [&](Value v) { return known.contains(v); }) ||
        !llvm::any_of(call.getOperands(),
                      [&](Value v) { return own.contains(v.getDefiningOp()); }) ||
        !llvm::all_of(call.getResults(), [&](Value v) { return isOfOneToken(v, axes); }))
      continue;
    auto isData = [&](Value operand) { return axes.isData(operand); };
    graph::CallOp like = sums.size() < before.size() ? before[sums.size()] : graph::CallOp();
    bool isLike =
        like && like.getTarget() == call.getTarget() && like.getArguments() == call.getArguments();
    if (llvm::count_if(call.getOperands(), isData) < 2 &&
        (call.getNumOperands() > 1 || !(isLike || leadsOn(call))))
      continue;
    sums.push_back(call);
    own.insert(call);
    known.insert(call.getResults().begin(), call.getResults().end());
  }
  return sums;
}

void Sums::takeBehind() {
  std::vector<std::vector<graph::CallOp>> sums;
  for (const Layer &layer : layers)
    sums.push_back(sumsOf(layer, sums.empty() ? std::vector<graph::CallOp>() : sums.back()));
  // Where only some have such, they are a part of what comes behind all layers.
  if (llvm::any_of(sums, [](const auto &own) { return own.empty(); }))
    return;
  for (auto [layer, own] : llvm::zip_equal(layers, sums))
    take(layer, own);
}

/// What stands between layers and leads to one alone is a part of that one: a skip from an earlier
/// layer, a scale of the stream.
void Sums::takeBefore() {
  // The one layer that reads what an op makes, through others of no layer; null where there are
  // several, or what comes behind all layers reads it too.
  llvm::DenseMap<Operation *, Layer *> reader;
  llvm::DenseSet<Operation *> isBehind; // some layer
  SmallVector<graph::CallOp> calls(program.getBody().getOps<graph::CallOp>());
  for (graph::CallOp call : calls)
    if (llvm::any_of(call.getOperands(), [&](Value operand) {
          Operation *from = operand.getDefiningOp();
          return layerOf.contains(from) || isBehind.contains(from);
        }))
      isBehind.insert(call);
  for (graph::CallOp call : llvm::reverse(calls)) {
    SmallVector<Layer *> readers;
    for (Operation *user : call->getUsers())
      readers.push_back(layerOf.contains(user) ? layerOf.lookup(user) : reader.lookup(user));
    bool isPart = !layerOf.contains(call) && isBehind.contains(call) && !readers.empty() &&
                  llvm::all_equal(readers) && axes.mixing(call) == Mixing::None &&
                  llvm::all_of(call.getResults(), [&](Value v) { return isOfOneToken(v, axes); });
    reader[call] = isPart ? readers.front() : nullptr;
  }
  for (graph::CallOp call : calls)
    if (Layer *layer = reader.lookup(call))
      take(*layer, call);
}

llvm::Error ctxc::pt2::takeSums(std::vector<Layer> &layers, graph::ProgramOp program,
                                const TokenAxes &axes) {
  splitRuns(layers, program, axes);
  Sums sums(layers, program, axes);
  for (Layer &layer : layers)
    if (llvm::Error error = sums.takeBetween(layer))
      return error;
  sums.takeBehind();
  sums.takeBefore();
  return llvm::Error::success();
}
