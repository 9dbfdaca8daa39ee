#include "StandIn.h"
#include "ctxc/Reference/Evaluation.h"
#include "dialects/XF/BlockFacts.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

OwningOpRef<ModuleOp> ctxc::standAlone(xf::BlockOp block, const Bindings &bindings,
                                       xf::LayerOp layer) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(block.getLoc());
  auto copy = cast<xf::BlockOp>(block->clone());
  module->push_back(copy);
  // What is stored once has one name.
  xf::Identities identities(block, layer);
  copy.walk([&](xf::ParamOp param) { param.setName(identities[param.getName()]); });
  copy.walk([&](xf::ParamOp param) {
    if (bindings.frozen.contains(param.getName()))
      param.setFrozen(true);
  });
  if (layer)
    copy.walk([&](xf::SettingOp setting) {
      if (Attribute value = layer.getSettingValue(setting))
        setting.setValueAttr(value);
    });
  return module;
}

bool ctxc::sharesBankMembers(xf::BlockOp block, xf::LayerOp layer) {
  const xf::Identities identities(block, layer);
  for (auto &alias : identities.aliases())
    if (alias.first().contains('*') || StringRef(alias.second).contains('*'))
      return true;
  return false;
}

static bool isActivation(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32() && tensor.getRank() > 0;
}

namespace {
/// Builds one stand-in, op by op.
class StandIn {
public:
  explicit StandIn(Operation *op) : op(op), builder(op) {}

  Value build(RankedTensorType wanted) {
    Value read = all();
    if (!read)
      return {};
    int64_t in = sizeOf(read), out = wanted.getNumElements();
    Value row = reshaped(read, {1, in});
    // Where the result is larger, several that weigh the tokens in different ways.
    SmallVector<Value> parts;
    for (int64_t made = 0; made < out; made += in)
      parts.push_back(reshaped(attention(row, float(1 + made / in) / std::sqrt(float(in))), {in}));
    Value result = joined(parts);
    if (sizeOf(result) > out)
      result = xf::SliceOp::create(builder, op->getLoc(), typeOf({out}), result, /*from=*/0,
                                   /*along=*/0);
    return reshaped(result, wanted.getShape());
  }

private:
  static int64_t sizeOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  }
  RankedTensorType typeOf(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    if (cast<RankedTensorType>(value.getType()).getShape() == shape)
      return value;
    return xf::ReshapeOp::create(builder, op->getLoc(), typeOf(shape), value);
  }
  /// All activations that the op reads, as one vector; of an op that reads none, the block's
  /// inputs. Null where there are none.
  Value all() {
    SmallVector<Value> parts;
    auto add = [&](Value value) {
      if (isActivation(value.getType()) && !value.getDefiningOp<xf::ParamOp>())
        parts.push_back(reshaped(value, {sizeOf(value)}));
    };
    llvm::for_each(op->getOperands(), add);
    if (parts.empty())
      llvm::for_each(op->getBlock()->getArguments(), add);
    return parts.empty() ? Value() : joined(parts);
  }
  Value attention(Value row, float scale) {
    return xf::AttentionOp::create(
        builder, op->getLoc(), row.getType(), row, row, row, /*window=*/Value(),
        /*slopes=*/Value(), /*sinks=*/Value(), llvm::APFloat(scale), /*softcap=*/FloatAttr(),
        /*rounded=*/false, /*bidirectional=*/false, /*run=*/xf::RunAttr());
  }
  Value joined(ArrayRef<Value> parts) {
    if (parts.size() == 1)
      return parts.front();
    int64_t size = 0;
    for (Value part : parts)
      size += sizeOf(part);
    return xf::ConcatOp::create(builder, op->getLoc(), typeOf({size}), parts);
  }

  Operation *op;
  OpBuilder builder;
};
} // namespace

void ctxc::replaceUnknownContext(xf::BlockOp block) {
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
    if (!isa<xf::ContextualOpInterface>(op) || isa<reference::ReferenceOpInterface>(op) ||
        op.getNumResults() != 1 || !isActivation(op.getResult(0).getType()))
      continue;
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (Value value = StandIn(&op).build(type)) {
      op.getResult(0).replaceAllUsesWith(value);
      op.erase();
    }
  }
}
