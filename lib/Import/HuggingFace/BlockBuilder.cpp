#include "BlockBuilder.h"

#include "ctxc/Program/SliceName.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using mlir::RankedTensorType;

static RankedTensorType typeOf(mlir::Value value) {
  return cast<RankedTensorType>(value.getType());
}

static RankedTensorType reshaped(mlir::Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, typeOf(value).getElementType());
}

int64_t hf::width(mlir::Value value) { return typeOf(value).getShape().back(); }

int64_t hf::rows(mlir::Value matrix) { return typeOf(matrix).getShape().front(); }

mlir::Location BlockBuilder::at(StringRef as, StringRef what) const {
  mlir::Location where = file;
  // Without a module of its own: the layer's.
  std::string module = what.empty() ? StringRef(prefix).rtrim('.').str() : (prefix + what).str();
  if (!module.empty())
    where = mlir::NameLoc::get(builder.getStringAttr(module), where);
  return mlir::NameLoc::get(builder.getStringAttr(as), where);
}

mlir::Value BlockBuilder::param(StringRef name, ArrayRef<int64_t> shape, bool frozen) {
  auto [module, kind] = name.rsplit('.'); // "mlp.up_proj", "weight"
  if (kind != "weight" && kind != "bias" && kind != "gamma" && kind != "beta")
    module = name; // "mlp.experts.down_proj"
  std::string as = module.substr(module.rfind('.') + 1).str();
  if (kind == "bias" || kind == "beta")
    as += "_bias";
  std::string stored = prefix + name.str();
  RankedTensorType type = isBankName(stored) ? tensors.bankType(stored, shape, context())
                                             : tensors.type(stored, shape, context());
  std::string symbol = relative ? name.str() : stored;
  return xf::ParamOp::create(builder, at(as, module), type, symbol, frozen);
}

mlir::Value BlockBuilder::embed(StringRef as, Value table, Value id) {
  return xf::EmbedOp::create(builder, at(as), table, id);
}

mlir::Value BlockBuilder::position(StringRef as, int64_t offset) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return xf::PositionOp::create(builder, at(as), type, uint64_t(offset));
}

mlir::Value BlockBuilder::constant(StringRef as, int32_t id) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return xf::ConstantOp::create(builder, at(as), type, uint32_t(id));
}

mlir::Value BlockBuilder::linear(StringRef as, Value weight, Value x) {
  return xf::LinearOp::create(builder, at(as), weight, x);
}

mlir::Value BlockBuilder::linear(StringRef as, StringRef module, int64_t out, Value x, bool bias) {
  Value weight = param((module + ".weight").str(), {out, width(x)});
  return product(as, module, weight, x, /*transposed=*/false, out, bias);
}

mlir::Value BlockBuilder::conv1d(StringRef as, StringRef module, int64_t out, Value x, bool bias) {
  if (tensors.conventions().plainMatrices)
    return linear(as, module, out, x, bias);
  Value weight = param((module + ".weight").str(), {width(x), out});
  return product(as, module, weight, x, /*transposed=*/true, out, bias);
}

mlir::Value BlockBuilder::product(StringRef as, StringRef module, Value weight, Value x,
                                  bool transposed, int64_t out, bool bias) {
  std::string name = (bias ? as + "_product" : as).str();
  Value y = xf::LinearOp::create(builder, at(name, module), weight, x, transposed);
  if (!bias)
    return y;
  Value b = param((module + ".bias").str(), {out});
  return xf::BiasOp::create(builder, at(as, module), y, b);
}

mlir::Value BlockBuilder::norm(StringRef as, StringRef module, const Norm &norm, Value x) {
  std::string hat = (norm.scale || norm.bias ? as + "_hat" : as).str();
  std::string scaled = (norm.bias ? as + "_scaled" : as).str();
  const int64_t shape = width(x);
  Value y = xf::NormalizeOp::create(builder, at(hat, module), norm.kind, x, APFloat(norm.eps));
  // BERT's first checkpoints say gamma and beta.
  bool older = has((module + ".gamma").str());
  double offset = tensors.conventions().wholeScales ? 0 : norm.offset;
  if (norm.scale)
    y = xf::ScaleOp::create(builder, at(scaled, module), y,
                            param((module + (older ? ".gamma" : ".weight")).str(), shape),
                            APFloat(float(offset)));
  if (norm.bias)
    y = xf::BiasOp::create(builder, at(as, module), y,
                           param((module + (older ? ".beta" : ".bias")).str(), shape));
  return y;
}

mlir::Value BlockBuilder::bias(StringRef as, Value x, Value b) {
  return xf::BiasOp::create(builder, at(as), x, b);
}

mlir::Value BlockBuilder::scale(StringRef as, Value x, Value w) {
  return xf::ScaleOp::create(builder, at(as), x, w, APFloat(0.0f));
}

mlir::Value BlockBuilder::add(StringRef as, Value a, Value b) {
  return xf::AddOp::create(builder, at(as), a, b);
}

mlir::Value BlockBuilder::mul(StringRef as, Value a, Value b) {
  return xf::MulOp::create(builder, at(as), a, b);
}

mlir::Value BlockBuilder::times(StringRef as, Value x, double factor) {
  return xf::TimesOp::create(builder, at(as), x, APFloat(float(factor)));
}

mlir::Value BlockBuilder::activation(StringRef as, xf::ActivationKind kind, Value x) {
  return xf::ActivationOp::create(builder, at(as), kind, x);
}

mlir::Value BlockBuilder::softmax(StringRef as, Value x) {
  return xf::SoftmaxOp::create(builder, at(as), x);
}

mlir::Value BlockBuilder::softcap(StringRef as, Value x, double cap) {
  return xf::SoftcapOp::create(builder, at(as), x, APFloat(float(cap)));
}

mlir::Value BlockBuilder::clamp(StringRef as, Value x, double limit) {
  return xf::ClampOp::create(builder, at(as), x, APFloat(float(limit)));
}

mlir::Value BlockBuilder::clampAbove(StringRef as, Value x, double limit) {
  return xf::ClampOp::create(builder, at(as), x, APFloat(float(limit)), /*above=*/true);
}

mlir::Value BlockBuilder::heads(StringRef as, Value x, int64_t dim) {
  return xf::ReshapeOp::create(builder, at(as), reshaped(x, {width(x) / dim, dim}), x);
}

mlir::Value BlockBuilder::flat(StringRef as, Value x) {
  return xf::ReshapeOp::create(builder, at(as), reshaped(x, {typeOf(x).getNumElements()}), x);
}

mlir::Value BlockBuilder::reshape(StringRef as, Value x, ArrayRef<int64_t> shape) {
  return xf::ReshapeOp::create(builder, at(as), reshaped(x, shape), x);
}

mlir::Value BlockBuilder::slice(StringRef as, Value x, int64_t from, int64_t size, int64_t along) {
  SmallVector<int64_t> shape(typeOf(x).getShape());
  shape[along] = size;
  return xf::SliceOp::create(builder, at(as), reshaped(x, shape), x, uint64_t(from),
                             uint64_t(along));
}

mlir::Value BlockBuilder::concat(StringRef as, ArrayRef<Value> parts, int64_t along) {
  return xf::ConcatOp::create(builder, at(as), parts, uint64_t(along));
}

mlir::Value BlockBuilder::broadcast(StringRef as, Value x, int64_t count) {
  SmallVector<int64_t> shape(typeOf(x).getShape());
  shape[0] = count;
  return xf::BroadcastOp::create(builder, at(as), reshaped(x, shape), x);
}

mlir::Value BlockBuilder::rotary(StringRef as, Value x, Value frequencies, xf::RotaryStyle style,
                                 double amplitude) {
  if (tensors.conventions().interleavedHeads)
    style = xf::RotaryStyle::interleaved;
  return xf::RotaryOp::create(builder, at(as), x.getType(), style, x, frequencies,
                              APFloat(float(amplitude)));
}

mlir::Value BlockBuilder::attention(StringRef as, Value q, Value k, Value v, const Scores &scores) {
  auto type = reshaped(q, {typeOf(q).getShape()[0], width(v)});
  mlir::FloatAttr cap =
      scores.cap ? builder.getF32FloatAttr(float(*scores.cap)) : mlir::FloatAttr();
  return xf::AttentionOp::create(builder, at(as), type, q, k, v, scores.window, scores.slopes,
                                 scores.sinks, APFloat(float(scores.scale)), cap, scores.rounded,
                                 scores.bidirectional, xf::RunAttr());
}

mlir::Value BlockBuilder::conv(StringRef as, StringRef module, Value K, Value x) {
  return xf::ConvOp::create(builder, at(as, module), K, x, xf::RunAttr());
}

mlir::Value BlockBuilder::linearAttention(StringRef as, StringRef module, Value q, Value k, Value v,
                                          Value decay, Value rates, Value delta) {
  return xf::LinearAttentionOp::create(builder, at(as, module), q, k, v, decay, rates, delta,
                                       xf::RunAttr());
}

mlir::Value BlockBuilder::transpose(StringRef as, Value x) {
  return xf::TransposeOp::create(builder, at(as), x, ArrayRef<int64_t>{1, 0});
}

mlir::Value BlockBuilder::router(StringRef as, StringRef module, int64_t count, Value z) {
  Value logits = linear((as + "_logits").str(), module, count, z);
  return xf::SoftmaxOp::create(builder, at(as, module), logits);
}

mlir::Value BlockBuilder::topK(StringRef as, Value scores, int64_t count, int64_t groups,
                               int64_t keep) {
  return xf::TopKOp::create(builder, at(as), scores, uint64_t(count), uint64_t(groups),
                            uint64_t(keep));
}

mlir::Value BlockBuilder::gather(StringRef as, Value x, Value selected) {
  return xf::GatherOp::create(builder, at(as), x, selected);
}

mlir::Value BlockBuilder::sumToOne(StringRef as, Value w, double eps) {
  return xf::NormalizeOp::create(builder, at(as), xf::NormKind::sum, w, APFloat(eps));
}

mlir::Value BlockBuilder::expertLinear(StringRef as, StringRef module, int64_t count, int64_t out,
                                       Value selected, Value x) {
  Value bank = param((module + ".weight").str(), {count, out, width(x)});
  return expertLinear(as, module, bank, selected, x);
}

mlir::Value BlockBuilder::expertLinear(StringRef as, StringRef module, Value bank, Value selected,
                                       Value x, bool transposed) {
  return xf::ExpertLinearOp::create(builder, at(as, module), bank, selected, x, transposed);
}

mlir::Value BlockBuilder::combine(StringRef as, Value w, Value y) {
  return xf::CombineOp::create(builder, at(as), w, y);
}

static mlir::Type frequencies(int64_t dims, mlir::OpBuilder &builder) {
  return RankedTensorType::get({dims / 2}, builder.getF32Type());
}

mlir::Value BlockBuilder::rope(StringRef as, int64_t dims, mlir::Attribute value) {
  return xf::SettingOp::create(builder, at(as), frequencies(dims, builder), as, value);
}

mlir::Value BlockBuilder::numbers(StringRef as, ArrayRef<float> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, builder.getF32Type());
  return xf::SettingOp::create(builder, at(as), type, as,
                               mlir::DenseElementsAttr::get(type, values));
}

mlir::Value BlockBuilder::setting(StringRef as, mlir::Type type, mlir::Attribute value) {
  layerSettings.set(as, value);
  return xf::SettingOp::create(builder, at(as), type, as, mlir::Attribute());
}

mlir::Value BlockBuilder::layerRope(StringRef as, int64_t dims, mlir::Attribute value) {
  return setting(as, frequencies(dims, builder), value);
}

mlir::Value BlockBuilder::layerIndex(StringRef as, int64_t value) {
  return setting(as, builder.getIndexType(), builder.getI64IntegerAttr(value));
}

mlir::Value BlockBuilder::layerNumber(StringRef as, double value) {
  auto type = RankedTensorType::get({1}, builder.getF32Type());
  return setting(as, type, mlir::DenseElementsAttr::get(type, {float(value)}));
}

mlir::DictionaryAttr BlockBuilder::settings() const {
  return layerSettings.empty() ? mlir::DictionaryAttr() : layerSettings.getDictionary(context());
}
