#include "ctxc/Gradient/Tape.h"
#include "Models.h"
#include "ctxc/Gradient/Registration.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gradient;

#include "ctxc/Gradient/GradientInterface.cpp.inc"

void ctxc::registerGradientModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, xf::XFDialect *) {
    attachSources(*context);
    attachMatrixOps(*context);
    attachTokenOps(*context);
    attachShapeOps(*context);
    attachAttention(*context);
  });
}

void Tape::setEntries(const KeysAndValues &seen) {
  entries = &seen;
  entryGradients = seen;
  for (std::vector<float> *sums : {&entryGradients.keys, &entryGradients.values})
    sums->assign(sums->size(), 0);
}

llvm::Error Tape::evaluate(xf::BlockOp evaluated, ArrayRef<const std::vector<float> *> inputs,
                           Operation *last) {
  block = evaluated;
  for (auto [argument, input] : llvm::zip(block.getBody().getArguments(), inputs)) {
    const int64_t width = input->size() / count();
    set(argument, Eigen::Map<const Rows>(input->data(), count(), width));
    active.insert(argument);
  }
  for (Operation &op : block.getBody().front().without_terminator()) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return makeError("'" + op.getName().getStringRef() +
                       "' has no gradient; this model cannot be refined");
    if (llvm::any_of(op.getOperands(), [&](Value value) { return isActive(value); }))
      active.insert(op.result_begin(), op.result_end());
    if (llvm::Error error = differentiable.evaluate(*this))
      return error;
    if (&op == last)
      break;
  }
  return llvm::Error::success();
}

const Rows &Tape::output(unsigned i) const {
  return rows(block.getBody().front().getTerminator()->getOperand(i));
}

llvm::Error Tape::pullBack(ArrayRef<const Rows *> ofOutputs) {
  Block &body = block.getBody().front();
  for (auto [value, rows] : llvm::zip(body.getTerminator()->getOperands(), ofOutputs))
    if (rows)
      add(value, *rows);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value value) { return gradients.contains(value); }))
      continue;
    if (llvm::Error error = cast<DifferentiableOpInterface>(op).pullBack(*this))
      return error;
    for (Value result : op.getResults())
      gradients.erase(result);
  }
  return llvm::Error::success();
}

const Rows *Tape::ofInput(unsigned i) const {
  auto found = gradients.find(block.getBody().getArgument(i));
  return found == gradients.end() ? nullptr : &found->second;
}

bool Tape::isNeeded(Value value) const {
  return needsOutputs || llvm::any_of(value.getUsers(), [](Operation *user) {
           return !user->hasTrait<OpTrait::IsTerminator>();
         });
}

const Rows &Tape::gradient(Value result) {
  auto [found, isNew] = gradients.try_emplace(result);
  if (isNew)
    found->second = Rows::Zero(count(), rows(result).cols());
  return found->second;
}

void Tape::add(Value operand, const Rows &rows) {
  if (!isActive(operand))
    return;
  auto [found, isNew] = gradients.try_emplace(operand, rows);
  if (!isNew)
    found->second += rows;
}

std::string Tape::nameOf(xf::ParamOp param) const {
  return layer ? layer.getStoredName(param.getName()) : param.getName().str();
}

Attribute Tape::settingOf(xf::SettingOp op) {
  return layer ? layer.getSettingValue(op) : op.getValueAttr();
}

llvm::Expected<const float *> Tape::parameter(Operation *reader, Value value) const {
  auto param = value.getDefiningOp<xf::ParamOp>();
  auto type = cast<RankedTensorType>(value.getType());
  if (!param || !type.getElementType().isF32())
    return makeError("'" + reader->getName().getStringRef() +
                     "' reads a parameter that is not stored in float32; this model cannot be "
                     "refined");
  auto data = weights.get(nameOf(param), type);
  if (!data)
    return data.takeError();
  return static_cast<const float *>(*data);
}

ArrayRef<int32_t> Tape::chosenEntries(Value value) const {
  if (chosen.empty())
    return {};
  for (Operation *op = value.getDefiningOp(); op && op->getNumOperands() > 0;
       op = op->getOperand(0).getDefiningOp())
    if (auto found = chosen.find(op); found != chosen.end())
      return found->second;
  return {};
}

Eigen::VectorXd *Tape::sumOf(Value value) {
  auto param = value.getDefiningOp<xf::ParamOp>();
  auto found = wanted.find(nameOf(param));
  if (found == wanted.end())
    return nullptr;
  if (found->second.size() == 0)
    found->second.setZero(cast<RankedTensorType>(value.getType()).getNumElements());
  return &found->second;
}

void Tape::tellProduct(Value matrix, Eigen::Ref<const Rows> data,
                       Eigen::Ref<const Rows> ofProduct) const {
  if (auto param = matrix.getDefiningOp<xf::ParamOp>(); param && ofProducts)
    ofProducts(nameOf(param), data, ofProduct);
}
