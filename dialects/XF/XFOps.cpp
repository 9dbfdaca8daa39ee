// Verifiers, type inference, and the states of contextual ops.
#include "dialects/XF/InferTypes.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

#define GET_OP_CLASSES
#include "dialects/XF/XFOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Type inference
//===----------------------------------------------------------------------===//

bool ctxc::xf::isSized(Type type) {
  constexpr int64_t most = int64_t(1) << 44;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0)
    return false;
  int64_t entries = 1;
  for (int64_t dim : tensor.getShape()) {
    if (ShapedType::isDynamic(dim) || dim <= 0 || dim > most / entries)
      return false;
    entries *= dim;
  }
  return true;
}

LogicalResult ctxc::xf::checkShapes(std::optional<Location> loc, StringRef op,
                                    ArrayRef<Shaped> operands) {
  for (const Shaped &operand : operands) {
    if (isSized(operand.type) && (!operand.rank || ranked(operand.type).getRank() == operand.rank))
      continue;
    std::string wanted = operand.rank ? std::to_string(operand.rank) +
                                            (operand.rank > 1 ? " dimensions" : " dimension")
                                      : "one or more dimensions";
    return emitOptionalError(loc, "'", op, "' op is given ", operand.type,
                             "; it needs a tensor of ", wanted, ", fixed and not 0");
  }
  return success();
}

LogicalResult EmbedOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.embed", {{adaptor.getTable().getType(), 2}})))
    return failure();
  types.push_back(activation(context, {ranked(adaptor.getTable().getType()).getDimSize(1)}));
  return success();
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.linear",
                         {{adaptor.getWeight().getType(), 2}, {adaptor.getData().getType()}})))
    return failure();
  auto w = ranked(adaptor.getWeight().getType()), x = ranked(adaptor.getData().getType());
  int64_t in = w.getDimSize(adaptor.getTransposed() ? 0 : 1);
  int64_t out = w.getDimSize(adaptor.getTransposed() ? 1 : 0);
  // C1
  if (x.getShape().back() != in)
    return emitOptionalError(loc, "'xf.linear' op multiplies a matrix of ", in, " inputs, ", w,
                             ", with ", x, "; the last dimension must be ", in);
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = out;
  types.push_back(activation(context, shape));
  return success();
}

/// Of bias and scale: the parameter's shape is that of the data's last dimensions.
static LogicalResult inferBroadcast(MLIRContext *context, std::optional<Location> loc, StringRef op,
                                    Type data, Type parameter, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, op, {{data}, {parameter}})))
    return failure();
  auto x = ranked(data), p = ranked(parameter);
  // C1
  if (p.getRank() > x.getRank() || x.getShape().take_back(p.getRank()) != p.getShape())
    return emitOptionalError(loc, "'", op, "' op joins ", x, " and a parameter of type ", p,
                             "; the parameter must have the data's last dimensions");
  types.push_back(activation(context, x.getShape()));
  return success();
}

LogicalResult BiasOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferBroadcast(context, loc, "xf.bias", adaptor.getData().getType(),
                        adaptor.getBias().getType(), types);
}

LogicalResult ScaleOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferBroadcast(context, loc, "xf.scale", adaptor.getData().getType(),
                        adaptor.getScale().getType(), types);
}

static LogicalResult inferProduct(std::optional<Location> loc, StringRef op, Type lhs, Type rhs,
                                  SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, op, {{lhs}, {rhs}})))
    return failure();
  // C1
  if (lhs != rhs && ranked(rhs).getShape() != ArrayRef<int64_t>{1})
    return emitOptionalError(loc, "'", op, "' op joins ", lhs, " and ", rhs,
                             "; the types must be equal, or the second tensor<1xf32>");
  types.push_back(lhs);
  return success();
}

LogicalResult MulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  return inferProduct(loc, "xf.mul", adaptor.getLhs().getType(), adaptor.getRhs().getType(), types);
}

LogicalResult DivOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  return inferProduct(loc, "xf.div", adaptor.getLhs().getType(), adaptor.getRhs().getType(), types);
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  // C1
  if (adaptor.getParts().empty())
    return emitOptionalError(loc, "'xf.concat' op needs at least one operand");
  for (Value part : adaptor.getParts())
    if (failed(checkShapes(loc, "xf.concat", {{part.getType()}})))
      return failure();
  SmallVector<int64_t> shape(ranked(adaptor.getParts().front().getType()).getShape());
  int64_t along = valueOr(adaptor.getProperties().along, 0);
  // C2
  if (along < 0 || along >= int64_t(shape.size()))
    return emitOptionalError(loc, "'xf.concat' op joins along dimension ", along, " of ",
                             adaptor.getParts().front().getType());
  for (Value part : adaptor.getParts().drop_front()) {
    SmallVector<int64_t> other(ranked(part.getType()).getShape());
    int64_t whole = shape[along];
    if (other.size() == shape.size())
      shape[along] = other[along];
    if (other != shape)
      return emitOptionalError(loc, "'xf.concat' op joins ", adaptor.getParts().front().getType(),
                               " and ", part.getType(), "; all dimensions but the ",
                               along ? "one that it goes along" : "first", " must be equal");
    shape[along] += whole;
  }
  types.push_back(activation(context, shape));
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

// C1
LogicalResult OpaqueContextualOp::verify() { return verifyName(*this, getName()); }

LogicalResult ParamOp::verify() {
  // C1
  if (getName().count('*') > 1)
    return emitOpError("has the name '") << getName() << "' and type " << getType()
                                         << "; one '*' may count tensors, by the first dimension";
  // C2
  auto quantized = dyn_cast<QuantizedType>(ranked(getType()).getElementType());
  int64_t rank = ranked(getType()).getRank();
  if (quantized && ((rank != 2 && rank != 3) ||
                    ranked(getType()).getShape().back() % quantized.getBlockElements()))
    return emitOpError("has type ")
           << getType() << "; a quantised parameter is a matrix, or a bank of matrices, with rows "
           << "of a multiple of " << quantized.getBlockElements();
  // C4
  if (getConstant() && !getFrozen())
    return emitOpError("is constant and not frozen; no patch may change a part of the program");
  // C3
  return verifyName(*this, getName());
}

LogicalResult NormalizeOp::verify() {
  double eps = getEps().convertToDouble();
  // C1
  if (!std::isfinite(eps) || eps < 0)
    return emitOpError("has eps ") << eps << "; it must be finite and not negative";
  return success();
}

static LogicalResult verifyCap(Operation *op, float cap) {
  if (!std::isfinite(cap) || cap <= 0)
    return op->emitOpError("has cap ") << cap << "; it must be finite and positive";
  return success();
}

LogicalResult TokenOp::verify() {
  // C1
  if (int32_t(getBy()) < 0 || llvm::any_of(getReplaced(), [](int32_t id) { return id < 0; }))
    return emitOpError("has a negative id");
  return success();
}

LogicalResult PositionOp::verify() {
  // C1
  if (int64_t(getOffset()) < 0)
    return emitOpError("has offset ") << int64_t(getOffset()) << "; it must not be negative";
  if (int64_t(getDivisor()) < 1)
    return emitOpError("has divisor ") << int64_t(getDivisor()) << "; it must be positive";
  // C2
  if (auto type = cast<RankedTensorType>(getType()); type.getRank() && type.getNumElements() != 1)
    return emitOpError("has the result ") << type << "; expected tensor<i32> or tensor<1xf32>";
  return success();
}

LogicalResult ConstantOp::verify() {
  // C1
  if (int32_t(getId()) < 0)
    return emitOpError("has the id ") << int32_t(getId()) << "; it must not be negative";
  return success();
}

LogicalResult ClampOp::verify() { return verifyCap(*this, getLimit().convertToFloat()); } // C1

LogicalResult SoftcapOp::verify() { return verifyCap(*this, getCap().convertToFloat()); } // C1

LogicalResult LeakyOp::verify() { // C1
  if (!getSlope().isFinite() || getSlope().convertToFloat() <= 0)
    return emitOpError("has slope ")
           << getSlope().convertToFloat() << "; it must be finite and positive";
  return success();
}

LogicalResult PowerOp::verify() { // C1
  if (int64_t(getExponent()) != 2 && int64_t(getExponent()) != 3)
    return emitOpError("has exponent ") << int64_t(getExponent()) << "; it must be 2 or 3";
  return success();
}

LogicalResult TimesOp::verify() {
  // C1
  if (!getFactor().isFinite())
    return emitOpError("has a factor that is not finite");
  return success();
}

LogicalResult ReshapeOp::verify() {
  // C1
  if (ranked(getData().getType()).getNumElements() != ranked(getType()).getNumElements())
    return emitOpError("turns ") << getData().getType() << " into " << getType()
                                 << "; both must have the same number of elements";
  return success();
}

LogicalResult SliceOp::verify() {
  auto x = ranked(getData().getType()), y = ranked(getType());
  int64_t along = getAlong();
  // C3
  if (along < 0 || along >= x.getRank())
    return emitOpError("takes entries along dimension ") << along << " of " << x;
  // C2
  SmallVector<int64_t> shape(x.getShape());
  if (x.getRank() == y.getRank())
    shape[along] = y.getDimSize(along);
  if (ArrayRef(shape) != y.getShape())
    return emitOpError("takes ") << y << " from " << x << "; only the "
                                 << (along ? "dimension that it goes along" : "first dimension")
                                 << " may differ";
  // C1
  int64_t from = getFrom(), size = y.getDimSize(along), whole = x.getDimSize(along);
  if (from < 0 || size > whole || from > whole - size)
    return emitOpError("takes ") << size << " entries from " << from << " on, of " << whole;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto x = ranked(getData().getType()), y = ranked(getType());
  // C1
  if (x.getRank() != y.getRank() || x.getDimSize(0) != 1 ||
      x.getShape().drop_front() != y.getShape().drop_front())
    return emitOpError("repeats ")
           << x << " as " << y << "; it needs a first dimension of 1, and only that may differ";
  return success();
}

LogicalResult RotaryOp::verify() {
  auto x = ranked(getData().getType()), f = ranked(getFrequencies().getType());
  // C1
  if (x.getRank() != 2 || f.getRank() != 1 || 2 * f.getDimSize(0) > x.getDimSize(1))
    return emitOpError("rotates ")
           << x << " by " << f << "; it needs (heads, D) and at most D/2 frequencies";
  // C2
  if (!getAmplitude().isFinite() || getAmplitude().isZero())
    return emitOpError("has amplitude ")
           << getAmplitude().convertToFloat() << "; it must be finite and not zero";
  return success();
}

LogicalResult AttentionOp::verify() {
  auto q = ranked(getQuery().getType()), k = ranked(getKey().getType()),
       v = ranked(getValue().getType()), y = ranked(getType());
  // C1
  auto shapes = [&] {
    return emitOpError("has query ")
           << q << ", key " << k << ", value " << v << " and result " << y;
  };
  if (q.getRank() != 2 || k.getRank() != 2 || v.getRank() != 2 || y.getRank() != 2)
    return shapes() << "; each must be (heads, dims)";
  if (q.getDimSize(1) != k.getDimSize(1))
    return shapes() << "; query and key heads must be of one width";
  if (k.getDimSize(0) != v.getDimSize(0) || q.getDimSize(0) % k.getDimSize(0))
    return shapes() << "; keys and values must have the same number of heads, which divides the "
                       "queries'";
  if (y.getDimSize(0) != q.getDimSize(0) || y.getDimSize(1) != v.getDimSize(1))
    return shapes() << "; the result must have the queries' heads and the values' width";
  // C2
  if (std::optional<APFloat> cap = getSoftcap())
    if (failed(verifyCap(*this, cap->convertToFloat())))
      return failure();
  // C3
  if (getSlopes() &&
      getSlopes().getType() != RankedTensorType::get(q.getDimSize(0), q.getElementType()))
    return emitOpError("has slopes ")
           << getSlopes().getType() << " for query " << q << "; there must be one for each head";
  if (getSinks() && ranked(getSinks().getType()).getDimSize(0) != q.getDimSize(0))
    return emitOpError("has sinks ")
           << getSinks().getType() << " for query " << q << "; there must be one for each head";
  // C4
  if (getBidirectional() && getWindow())
    return emitOpError("is bidirectional and has a window; it may have one of them");
  return success();
}

LogicalResult ConvOp::verify() {
  auto w = ranked(getWeight().getType()), x = ranked(getData().getType());
  // C1
  if (x.getRank() != 1 || w.getDimSize(0) != x.getDimSize(0))
    return emitOpError("convolves ") << x << " with " << w << "; the weight must be (channels, k)";
  return success();
}

LogicalResult LinearAttentionOp::verify() {
  auto q = ranked(getQuery().getType()), k = ranked(getKey().getType()),
       v = ranked(getValue().getType());
  // C1
  if (q.getRank() != 2 || q != k || v.getRank() != 2 || v.getDimSize(0) % q.getDimSize(0))
    return emitOpError("has query ")
           << q << ", key " << k << " and value " << v
           << "; the first two must be (groups, dims), and the value (heads, dims) with a multiple "
              "of the groups";
  const int64_t heads = v.getDimSize(0);
  auto isOfHeads = [&](Value value, bool orRows) {
    ArrayRef<int64_t> shape = ranked(value.getType()).getShape();
    return shape == ArrayRef<int64_t>{heads} ||
           (orRows && shape == ArrayRef<int64_t>{heads, q.getDimSize(1)});
  };
  // C2
  for (Value each : {getDecay(), getRates()})
    if (each && !isOfHeads(each, /*orRows=*/true))
      return emitOpError("has ") << (each == getDecay() ? "decay " : "rates ") << each.getType()
                                 << " for query " << q << " and value " << v
                                 << "; there must be one number for each head, or for each row of "
                                    "its state";
  // C3
  if (getDelta() && !isOfHeads(getDelta(), /*orRows=*/false))
    return emitOpError("has delta ")
           << getDelta().getType() << " for value " << v << "; there must be one for each head";
  return success();
}

//===----------------------------------------------------------------------===//
// ContextualOpInterface
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionOp::getStateOperands() { return {getKey(), getValue()}; }
SmallVector<Value> ConvOp::getStateOperands() { return {getData()}; }
SmallVector<Value> ScanOp::getStateOperands() { return {getGate(), getInput()}; }
// A token's own weight does not stay.
SmallVector<Value> DecayingMeanOp::getStateOperands() { return {getKey(), getValue(), getDecay()}; }
// The query reads the state, which all others have made.
SmallVector<Value> LinearAttentionOp::getStateOperands() {
  SmallVector<Value> operands{getKey(), getValue(), getDecay()};
  if (getDelta())
    operands.push_back(getDelta());
  return operands;
}
// Values that are the same at every token are not part of the state.
SmallVector<Value> OpaqueContextualOp::getStateOperands() {
  return llvm::to_vector(llvm::make_filter_range(getOperands(), [](Value operand) {
    return !isa_and_nonnull<ParamOp, SettingOp>(operand.getDefiningOp());
  }));
}

std::optional<Run> AttentionOp::getStateRun() { return getRun(); }
void AttentionOp::setStateRun(Run run) { setRun(run); }
std::optional<Run> ConvOp::getStateRun() { return getRun(); }
void ConvOp::setStateRun(Run run) { setRun(run); }
std::optional<Run> ScanOp::getStateRun() { return getRun(); }
void ScanOp::setStateRun(Run run) { setRun(run); }
std::optional<Run> DecayingMeanOp::getStateRun() { return getRun(); }
void DecayingMeanOp::setStateRun(Run run) { setRun(run); }
std::optional<Run> LinearAttentionOp::getStateRun() { return getRun(); }
void LinearAttentionOp::setStateRun(Run run) { setRun(run); }
std::optional<Run> OpaqueContextualOp::getStateRun() { return getRun(); }
void OpaqueContextualOp::setStateRun(Run run) { setRun(run); }

RankedTensorType ScanOp::getCarried() { return ranked(getResult().getType()); }
RankedTensorType DecayingMeanOp::getCarried() {
  RankedTensorType type = ranked(getResult().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), 3);
  return type.clone(shape);
}
RankedTensorType LinearAttentionOp::getCarried() {
  auto key = ranked(getKey().getType()), value = ranked(getValue().getType());
  return value.clone({value.getDimSize(0), key.getDimSize(1), value.getDimSize(1)});
}
std::optional<int64_t> ConvOp::getReach() { return ranked(getWeight().getType()).getDimSize(1); }
