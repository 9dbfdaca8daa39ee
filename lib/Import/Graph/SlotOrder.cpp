#include "SlotOrder.h"
#include "GraphValues.h"
#include "Mask.h"
#include "dialects/Graph/AtenOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

namespace {

int64_t rankOf(Value value) { return cast<graph::SymbolicType>(value.getType()).getRank(); }

/// Follows the axis of the slots from a selection to what is computed of it.
class Follower {
public:
  explicit Follower(const TokenAxes &axes) : axes(axes) {}

  bool follow(graph::CallOp topk) {
    for (Value result : topk.getResults())
      slots[result] = rankOf(result) - 1;
    // Users come behind what they use.
    for (Operation *op = topk->getNextNode(); op; op = op->getNextNode()) {
      if (llvm::none_of(op->getOperands(), [&](Value v) { return slots.contains(v); }))
        continue;
      auto call = dyn_cast<graph::CallOp>(op);
      if (call && TokenAxes::ignoresNumbers(call))
        continue;
      if (!call || (axes.mixing(call) != Mixing::None && axes.isData(call.getResult(0))) ||
          !passes(call))
        return false;
    }
    return true;
  }

private:
  /// Whether the call goes slot by slot, or loses the slots' order; follows its results.
  bool passes(graph::CallOp call) {
    StringRef name = call.getBaseName();
    auto is = [&](std::initializer_list<StringLiteral> names) {
      return call.getTarget().starts_with("aten.") && llvm::is_contained(names, name);
    };
    const graph::AtenOp *op = graph::atenOp(call);
    if (op && name != "type_as" && // which reads the other's type alone
        (op->kind == graph::AtenKind::Entries || op->kind == graph::AtenKind::Copies ||
         name == "expand"))
      return aligned(call);
    if (is({"matmul"}))
      return inProduct(call);
    Value first = call.getOperand(0);
    auto known = slots.find(first);
    if (is({"index", "embedding"}) && known == slots.end()) { // rows of a table
      auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"));
      return (name == "embedding" || (list && list.size() == 1)) &&
             all(call, slots[call.getOperand(1)]);
    }
    if (is({"gather"}))
      return all(call, slots[call.getTensor("index")]);
    if (is({"scatter", "scatter_add"}))
      return placed(call);
    if (known == slots.end())
      return false;
    if (is({"type_as"}))
      return all(call, known->second);
    int64_t slot = known->second, rank = rankOf(first);
    std::optional<int64_t> dim = integerOf(call, "dim");
    if (dim)
      *dim += *dim < 0 ? rank + (name == "unsqueeze") : 0;
    if (is({"softmax", "silu", "rms_norm", "one_hot"}))
      return all(call, slot);
    if (is({"unsqueeze"}))
      return dim && all(call, slot + (*dim <= slot));
    if (is({"squeeze"}))
      return dim && *dim != slot && all(call, slot - (*dim < slot));
    if (is({"split", "split_with_sizes", "chunk", "slice"}))
      return dim.value_or(0) != slot && all(call, slot);
    if (is({"select"}))
      return dim && *dim != slot && all(call, slot - (*dim < slot));
    if (is({"permute", "transpose", "t"})) {
      SmallVector<int64_t> order = orderOf(call);
      return !order.empty() && all(call, llvm::find(order, slot) - order.begin());
    }
    if (is({"sum", "mean", "any"}))
      return reduced(call, slot);
    if (is({"view", "reshape"}))
      return viewed(call, slot);
    return false;
  }

  bool all(graph::CallOp call, int64_t slot) {
    for (Value result : call.getResults())
      slots[result] = slot;
    return true;
  }

  /// Entry by entry: the slots' axes meet, and nothing else has an order of its own along them.
  bool aligned(graph::CallOp call) {
    int64_t rank = rankOf(call.getResult(0));
    std::optional<int64_t> common;
    for (Value operand : call.getOperands())
      if (auto known = slots.find(operand); known != slots.end()) {
        int64_t slot = known->second + rank - rankOf(operand);
        if (common && *common != slot)
          return false;
        common = slot;
      }
    for (Value operand : call.getOperands()) {
      int64_t at = *common - (rank - rankOf(operand));
      if (!slots.contains(operand) && at >= 0 && !isOne(operand, at) && !numberIn(operand, axes))
        return false;
    }
    return all(call, *common);
  }

  /// Each slot's number where its index says: no slots are left.
  bool placed(graph::CallOp call) {
    Value index = call.getTensor("index"), source = call.getTensor("src");
    auto known = index ? slots.find(index) : slots.end();
    std::optional<int64_t> dim = integerOf(call, "dim");
    if (known == slots.end() || !dim || slots.contains(call.getTensor("self")))
      return false;
    *dim += *dim < 0 ? rankOf(index) : 0;
    auto other = source ? slots.find(source) : slots.end();
    bool isAlike = !source || numberIn(source, axes) ||
                   (other != slots.end() && other->second == known->second);
    return *dim == known->second && isAlike;
  }

  bool inProduct(graph::CallOp call) {
    Value left = call.getOperand(0), right = call.getOperand(1);
    auto l = slots.find(left), r = slots.find(right);
    // Summed over.
    if (l != slots.end() && r != slots.end() && l->second == rankOf(left) - 1 &&
        r->second == rankOf(right) - 2)
      return true;
    auto isOfMatrix = [&](Value value, auto known) {
      return known != slots.end() && known->second >= rankOf(value) - 2;
    };
    return !isOfMatrix(left, l) && !isOfMatrix(right, r) && aligned(call);
  }

  bool reduced(graph::CallOp call, int64_t slot) {
    auto dims = dyn_cast_or_null<ArrayAttr>(call.getArgument("dim"));
    auto one = dims && dims.size() == 1 ? dyn_cast<IntegerAttr>(dims[0])
                                        : dyn_cast_or_null<IntegerAttr>(call.getArgument("dim"));
    if (!one)
      return false;
    int64_t rank = rankOf(call.getOperand(0)), dim = one.getInt() + (one.getInt() < 0 ? rank : 0);
    if (dim == slot)
      return true; // no slots are left
    bool keeps = rankOf(call.getResult(0)) == rank;
    return all(call, slot - (!keeps && dim < slot));
  }

  bool viewed(graph::CallOp call, int64_t slot) {
    auto before = [](Value value, int64_t axis) { // sizes without those of 1
      SmallVector<Attribute> sizes;
      for (auto [i, size] : llvm::enumerate(sizesOf(value).take_front(axis)))
        if (!isOne(value, i))
          sizes.push_back(size);
      return sizes;
    };
    Value from = call.getOperand(0), to = call.getResult(0);
    for (int64_t axis = 0; axis < rankOf(to); ++axis)
      if (sizesOf(to)[axis] == sizesOf(from)[slot] && before(to, axis) == before(from, slot))
        return all(call, axis);
    return false;
  }

  static bool isOne(Value value, int64_t axis) {
    return cast<graph::SymbolicType>(value.getType()).getNumber(axis) == 1;
  }

  const TokenAxes &axes;
  llvm::DenseMap<Value, int64_t> slots;
};

} // namespace

bool ctxc::pt2::ignoresSlotOrder(graph::CallOp topk, const TokenAxes &axes) {
  return Follower(axes).follow(topk);
}
