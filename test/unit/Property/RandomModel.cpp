#include "RandomModel.h"
#include "../Compiled/BlockText.h"
#include "RandomDag.h"
#include <random>

using namespace ctxc::test;

namespace {

/// A block's text and what it maps to what.
struct BlockShape {
  std::string name, text;
  std::vector<Shape> inputs, outputs;
  std::vector<TextValue> settings = {}; ///< that each layer gives
};

class ModelMaker {
public:
  /// Of every fourth seed the layers are mixers alone, MLPs alone, and both, as in Nemotron-H; of
  /// three seeds in seven, layers have settings of their own.
  explicit ModelMaker(uint64_t seed)
      : random(seed), ofSettings(seed), ofParts(seed % 4 == 3), hasSettings(seed % 7 % 3 == 0),
        width(3 + below(3)), b("m", width) {}
  RandomModel make();

private:
  int64_t below(int64_t n) { return random() % n; }
  bool oneIn(int64_t n) { return below(n) == 0; }
  template <typename T> const T &pick(const std::vector<T> &from) {
    return from[below(from.size())];
  }

  TextValue contextual(BlockText &in, const TextValue &x);
  TextValue mlp(BlockText &in, const TextValue &x);
  TextValue setting(BlockText &in, BlockShape &block, const Shape &shape);
  TextValue bySettings(BlockText &in, BlockShape &block, const TextValue &v, TextValue y);
  std::string drawSettings(const BlockShape &block);
  BlockShape residual(const std::string &name);
  BlockShape mixerAlone(const std::string &name);
  BlockShape mlpAlone(const std::string &name);
  BlockShape anyDag(const std::string &name);
  BlockShape makeBlock(const std::string &name) { return oneIn(4) ? anyDag(name) : residual(name); }

  TextValue input(const Shape &shape, bool isFirst);
  void runLayer(const BlockShape &block, int64_t number);
  TextValue head();

  std::mt19937_64 random, ofSettings;
  bool ofParts, hasSettings;
  int64_t width;
  BlockText b;                   ///< the body, as ops of a block
  std::vector<TextValue> ofBody; ///< what was made before the layers
  std::vector<TextValue> pool;   ///< and by them, all 1-dimensional
  TextValue stream;              ///< the last layer's first output of the model's width
};

TextValue ModelMaker::contextual(BlockText &in, const TextValue &x) {
  int64_t n = x.shape[0];
  if (oneIn(3)) {
    TextValue k = in.param({n, 2 + below(2)});
    return in.op("xf.conv " + k.name + ", " + x.name, typeOf(k) + ", " + typeOf(x), x.shape);
  }
  if (oneIn(4)) {
    TextValue gate = in.unary("activation sigmoid", in.linear(x, n));
    return in.op("xf.scan " + gate.name + ", " + x.name, typeOf(x), x.shape);
  }
  auto project = [&] { return in.reshape(in.linear(x, n), {1, n}); };
  TextValue q = project(), k = project(), v = project();
  return in.reshape(in.attention(q, k, v, oneIn(4) ? 2 : 0), {n});
}

TextValue ModelMaker::mlp(BlockText &in, const TextValue &x) {
  TextValue n = oneIn(2) ? in.scale(in.unary("normalize rms", x, " eps 1.0e-3"), x.shape, true) : x;
  TextValue h = in.unary(oneIn(2) ? "activation gelu" : "activation silu", in.linear(n, 5));
  if (oneIn(2))
    h = in.mul(h, in.linear(n, 5));
  TextValue y = in.linear(h, width);
  if (oneIn(4))
    y = in.scale(in.unary("normalize rms", y, " eps 1.0e-3"), y.shape, true);
  return oneIn(4) ? in.bias(y, y.shape) : y;
}

TextValue ModelMaker::setting(BlockText &in, BlockShape &block, const Shape &shape) {
  TextValue value{in.fresh("s"), shape};
  block.settings.push_back(value);
  return in.op("xf.setting \"" + value.name + "\"", typeOf(shape), shape);
}

/// What becomes of a branch `y` beside the stream `v` depends on settings: with some numbers it
/// vanishes, or loses a dimension, by an identity of which no op knows.
TextValue ModelMaker::bySettings(BlockText &in, BlockShape &block, const TextValue &v,
                                 TextValue y) {
  int64_t n = width;
  auto combine = [&](const TextValue &weights, const TextValue &rows) {
    TextValue column = in.reshape(rows, {n, 1});
    return in.op("xf.combine " + weights.name + ", " + column.name,
                 typeOf(weights) + ", " + typeOf(column), {1});
  };
  switch (ofSettings() % 5) {
  case 0: { // behind a matrix, which need not be invertible
    TextValue m = setting(in, block, {n, n});
    return in.op("xf.linear " + m.name + " * " + y.name, typeOf(m) + ", " + typeOf(y), {n});
  }
  case 1: { // times a b − c
    TextValue a = setting(in, block, {n}), c = setting(in, block, {n});
    return in.mul(y, in.sub(in.mul(a, setting(in, block, {n})), c));
  }
  case 2: { // a matrix that reads a sum of shares, less a number
    TextValue shares = in.unary("softmax", in.linear(v, n));
    TextValue sum = combine(setting(in, block, {n}), shares);
    return in.add(y, in.linear(in.sub(sum, setting(in, block, {1})), n));
  }
  case 3: { // a matrix that reads a sum of what a norm has centred
    TextValue centred = in.unary("normalize layer", in.linear(v, n), " eps 1.0e-3");
    return in.linear(combine(setting(in, block, {n}), centred), n);
  }
  default: { // a matrix that reads what a rotation changed of a pair
    TextValue pair = in.reshape(in.linear(v, 2), {1, 2}), f = setting(in, block, {1});
    TextValue turned = in.rotary("half", pair, f);
    return in.linear(in.reshape(in.sub(turned, pair), {2}), n);
  }
  }
}

/// Numbers for which identities hold now and then.
std::string ModelMaker::drawSettings(const BlockShape &block) {
  std::vector<std::string> given;
  for (const TextValue &setting : block.settings) {
    bool isSquare = setting.shape.size() == 2;
    uint64_t how = ofSettings() % (isSquare ? 4 : 3);
    int64_t columns = setting.shape.back(), rows = isSquare ? setting.shape.front() : 1;
    static const char *const values[] = {"1.0", "0.0", "2.0", "0.5", "-1.0"};
    auto any = [&] { return values[ofSettings() % 5]; };
    const char *same = any();
    std::vector<std::string> lines;
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<std::string> line;
      for (int64_t j = 0; j < columns; ++j)
        line.push_back(how == 3 ? i == j ? "1.0" : "0.0" : how == 2 ? any() : how ? same : "1.0");
      lines.push_back("[" + llvm::join(line, ", ") + "]");
    }
    if (isSquare && how == 0) // rows that are equal, and one that is not
      lines.front() = "[" + llvm::join(std::vector<std::string>(columns, "2.0"), ", ") + "]";
    std::string text = isSquare ? "[" + llvm::join(lines, ", ") + "]" : lines.front();
    given.push_back(setting.name + " = dense<" + text + "> : " + typeOf(setting));
  }
  return given.empty() ? "" : " settings {" + llvm::join(given, ", ") + "}";
}

/// A layer with a stream, and now and then a second input and a second output; some do not read the
/// context.
BlockShape ModelMaker::residual(const std::string &name) {
  BlockText t(name, width);
  BlockShape block{name, "", {{width}}, {{width}}};
  TextValue x = t.input(), side;
  bool hasSide = oneIn(3);
  if (hasSide) {
    side = t.input(Shape{width});
    block.inputs.push_back({width});
    if (oneIn(2))
      x = t.add(x, side);
  }
  TextValue v = oneIn(5) ? x : t.add(x, contextual(t, x));
  TextValue y = mlp(t, v);
  if (hasSide && oneIn(2))
    y = t.mul(t.unary("activation sigmoid", side), y);
  if (hasSettings)
    y = bySettings(t, block, v, y);
  TextValue out = t.add(v, y);
  t.output(out);
  if (oneIn(3)) {
    switch (below(4)) {
    case 0: // what the layer got
      t.output(t.input());
      break;
    case 1:
      t.output(t.bias(v, v.shape));
      break;
    case 2:
      t.output(out);
      break;
    default:
      t.output(t.unary("activation tanh", t.linear(out, width)));
    }
    block.outputs.push_back({width});
  }
  block.text = t.text();
  return block;
}

/// x + W mix(norm x), and now and then the stream behind that is normed, or another output.
BlockShape ModelMaker::mixerAlone(const std::string &name) {
  BlockText t(name, width);
  TextValue x = t.input(), n = x;
  if (oneIn(2))
    n = t.scale(t.unary("normalize rms", x, " eps 1.0e-3"), x.shape, true);
  TextValue y = t.add(x, t.linear(contextual(t, n), width));
  if (oneIn(4))
    y = t.add(y, t.linear(contextual(t, y), width));
  t.output(y);
  BlockShape block{name, "", {{width}}, {{width}}};
  if (oneIn(4)) {
    t.output(t.unary("times", y, " by 0.5"));
    block.outputs.push_back({width});
  }
  block.text = t.text();
  return block;
}

/// x + mlp(x), and now and then a second stream that is added first.
BlockShape ModelMaker::mlpAlone(const std::string &name) {
  BlockText t(name, width);
  BlockShape block{name, "", {{width}}, {{width}}};
  TextValue x = t.input();
  if (oneIn(3)) {
    block.inputs.push_back({width});
    x = t.add(x, t.input(Shape{width}));
  }
  t.output(t.add(x, mlp(t, x)));
  block.text = t.text();
  return block;
}

/// The shapes in "%x: tensor<4xf32>, %x1: tensor<3xf32>" or "tensor<4xf32>".
static std::vector<Shape> shapesIn(llvm::StringRef text) {
  std::vector<Shape> shapes;
  for (size_t at; (at = text.find("tensor<")) != llvm::StringRef::npos;) {
    text = text.drop_front(at + 7);
    llvm::SmallVector<llvm::StringRef> parts;
    text.take_until([](char c) { return c == '>'; }).split(parts, 'x');
    Shape &shape = shapes.emplace_back();
    for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back())
      shape.push_back(std::stoll(part.str()));
  }
  return shapes;
}

BlockShape ModelMaker::anyDag(const std::string &name) {
  std::string text = randomDag(random(), oneIn(4));
  text.replace(text.find("@dag"), 4, "@" + name);
  auto [arguments, results] =
      llvm::StringRef(text).take_until([](char c) { return c == '{'; }).split("->");
  return {name, text, shapesIn(arguments), shapesIn(results)};
}

/// A value of the shape that layers and the body have made, or a new one made of the embedding.
TextValue ModelMaker::input(const Shape &shape, bool isFirst) {
  if (isFirst && stream.shape == shape && !oneIn(5))
    return stream;
  std::vector<TextValue> fitting;
  for (const TextValue &value : pool)
    if (value.shape == shape)
      fitting.push_back(value);
  if (!fitting.empty() && !oneIn(6))
    return pick(fitting);
  int64_t size = 1;
  for (int64_t d : shape)
    size *= d;
  TextValue made = b.linear(pick(ofBody), size);
  return shape.size() == 1 ? made : b.reshape(made, shape);
}

void ModelMaker::runLayer(const BlockShape &block, int64_t number) {
  std::vector<std::string> names, types, results;
  for (auto [i, shape] : llvm::enumerate(block.inputs)) {
    names.push_back(input(shape, i == 0).name);
    types.push_back(typeOf(shape));
  }
  for (const Shape &shape : block.outputs)
    results.push_back(typeOf(shape));
  std::string made = "%l" + std::to_string(number);
  b.effect(made + ":" + std::to_string(block.outputs.size()) + " = xf.layer @" + block.name + "(" +
           llvm::join(names, ", ") + ") at \"" + std::to_string(number) + ".\"" +
           drawSettings(block) + " : (" + llvm::join(types, ", ") + ") -> (" +
           llvm::join(results, ", ") + ")");
  for (auto [i, shape] : llvm::enumerate(block.outputs)) {
    TextValue value{made + "#" + std::to_string(i), shape};
    if (shape.size() == 1)
      pool.push_back(value);
    if (i == 0 && shape == Shape{width})
      stream = value;
  }
}

TextValue ModelMaker::head() {
  TextValue y = stream;
  for (int64_t i = below(4) / 2; i > 0; --i) {
    TextValue other = pick(pool);
    if (other.shape != y.shape)
      other = b.linear(other, width);
    y = oneIn(3) ? b.mul(b.unary("activation sigmoid", other), y) : b.add(y, other);
  }
  if (oneIn(10))
    y = b.add(y, contextual(b, pick(ofBody)));
  if (oneIn(16))
    y = contextual(b, y);
  return oneIn(2) ? b.scale(b.unary("normalize rms", y, " eps 1.0e-3"), y.shape, false) : y;
}

RandomModel ModelMaker::make() {
  RandomModel model;
  model.vocabulary = 7 + below(6);
  std::vector<BlockShape> blocks;
  for (int64_t i = 1 + below(3); i > 0; --i)
    blocks.push_back(makeBlock("b" + std::to_string(i)));
  if (ofParts)
    blocks = {mixerAlone("mixer"), mlpAlone("mlp"), makeBlock("b1")};
  std::string table = typeOf(Shape{model.vocabulary, width});
  b.effect("%t = xf.token : tensor<i32>");
  b.effect("%E = xf.param \"embed\" : " + table);
  b.effect("%x = xf.embed %E[%t] : " + table + ", tensor<i32>");
  stream = b.input();
  ofBody = {stream};
  if (oneIn(3))
    ofBody.push_back(b.unary("activation tanh", b.linear(stream, width)));
  if (oneIn(4))
    ofBody.push_back(contextual(b, pick(ofBody)));
  pool = ofBody;
  if (oneIn(2))
    stream = ofBody.back();
  model.layers = 1 + below(4) + (ofParts ? below(4) : 0);
  for (int64_t i = 0; i < model.layers; ++i)
    runLayer(pick(blocks), i);
  TextValue logits = b.linear(head(), model.vocabulary);
  b.output(logits);

  // The body's ops, out of the block that they were written as.
  std::string body = b.text();
  body = body.substr(body.find('\n') + 1);
  for (const BlockShape &block : blocks)
    model.text += block.text;
  model.text += "xf.model @m {\n" + body;
  return model;
}

} // namespace

RandomModel ctxc::test::randomModel(uint64_t seed) { return ModelMaker(seed).make(); }
