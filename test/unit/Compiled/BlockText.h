// Writes blocks and models as text, op by op, and derives the types.
#ifndef CTXC_TEST_UNIT_COMPILED_BLOCKTEXT_H
#define CTXC_TEST_UNIT_COMPILED_BLOCKTEXT_H

#include "llvm/ADT/StringExtras.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ctxc::test {

using Shape = std::vector<int64_t>;

struct TextValue {
  std::string name;
  Shape shape;
  std::string element = "f32";
};

inline std::string typeOf(const Shape &shape, const std::string &element = "f32") {
  std::string text = "tensor<";
  for (int64_t d : shape)
    text += std::to_string(d) + "x";
  return text + element + ">";
}
inline std::string listOf(const Shape &numbers) {
  std::vector<std::string> texts;
  for (int64_t n : numbers)
    texts.push_back(std::to_string(n));
  return "[" + llvm::join(texts, ", ") + "]";
}
inline std::string typeOf(const TextValue &v) { return typeOf(v.shape); }

/// The text of one block. Subclasses can change how parameters are written.
class BlockText {
public:
  BlockText(std::string name, int64_t width) : name(std::move(name)), inputs{{"%x", {width}}} {}
  virtual ~BlockText() = default;

  TextValue input() const { return inputs.front(); }
  /// Adds an input.
  TextValue input(const Shape &shape) {
    return inputs.emplace_back(TextValue{"%x" + std::to_string(inputs.size()), shape});
  }
  void output(const TextValue &v) { outputs.push_back(v); }
  const std::vector<TextValue> &getOutputs() const { return outputs; }
  const std::string &getName() const { return name; }
  int64_t getWidth() const { return inputs.front().shape.front(); }

  TextValue op(const std::string &text, const std::string &types, Shape shape) {
    TextValue result{"%v" + std::to_string(next++), std::move(shape)};
    body += "  " + result.name + " = " + text + " : " + types + "\n";
    return result;
  }
  /// Adds an op without results.
  void effect(const std::string &text) { body += "  " + text + "\n"; }
  std::string fresh(const char *kind) { return kind + std::to_string(next++); }

  /// `suffix` is appended to the name: ".*" where each entry of the first dimension is a stored
  /// tensor.
  virtual TextValue param(const Shape &shape, const std::string &element = "f32",
                          const std::string &suffix = "") {
    TextValue p = op("xf.param \"" + fresh("p") + suffix + "\"", typeOf(shape, element), shape);
    p.element = element;
    return p;
  }
  TextValue linear(const TextValue &x, int64_t out, const std::string &element = "f32",
                   bool transposed = false) {
    int64_t in = x.shape.back();
    Shape stored = transposed ? Shape{in, out} : Shape{out, in}, shape = x.shape;
    shape.back() = out;
    TextValue w = param(stored, element);
    return op("xf.linear " + w.name + " * " + x.name + (transposed ? " transposed" : ""),
              typeOf(stored, element) + ", " + typeOf(x), shape);
  }
  TextValue bias(const TextValue &x, const Shape &of, const std::string &element = "f32") {
    TextValue b = param(of, element);
    return op("xf.bias " + x.name + " + " + b.name, typeOf(x) + ", " + typeOf(of, element),
              x.shape);
  }
  TextValue scale(const TextValue &x, const Shape &of, bool offset,
                  const std::string &element = "f32") {
    TextValue m = param(of, element);
    return op("xf.scale " + x.name + " by " + m.name + (offset ? " offset 1.0" : ""),
              typeOf(x) + ", " + typeOf(of, element), x.shape);
  }
  /// `text` is the op's name and what stands before its operand, `tail` what stands after it.
  TextValue unary(const std::string &text, const TextValue &x, const std::string &tail = "") {
    return op("xf." + text + " " + x.name + tail, typeOf(x), x.shape);
  }
  TextValue add(const TextValue &a, const TextValue &b) { return same("xf.add", a, b); }
  TextValue sub(const TextValue &a, const TextValue &b) { return same("xf.sub", a, b); }
  TextValue mul(const TextValue &a, const TextValue &b) { return apart("xf.mul", a, b); }
  TextValue div(const TextValue &a, const TextValue &b) { return apart("xf.div", a, b); }
  TextValue reshape(const TextValue &x, const Shape &to) {
    return op("xf.reshape " + x.name, typeOf(x) + " to " + typeOf(to), to);
  }
  TextValue slice(const TextValue &x, int64_t from, int64_t size, int64_t along = 0) {
    Shape shape = x.shape;
    shape[along] = size;
    return op("xf.slice " + x.name + " from " + std::to_string(from) +
                  (along ? " along " + std::to_string(along) : ""),
              typeOf(x) + " to " + typeOf(shape), shape);
  }
  TextValue transpose(const TextValue &x, const Shape &order) {
    Shape shape;
    for (int64_t from : order)
      shape.push_back(x.shape[from]);
    return op("xf.transpose " + x.name + " by " + listOf(order), typeOf(x), shape);
  }
  TextValue permute(const TextValue &x, const Shape &parts, const Shape &order, int64_t along = 0) {
    return op("xf.permute " + x.name + " parts " + listOf(parts) + " by " + listOf(order) +
                  (along ? " along " + std::to_string(along) : ""),
              typeOf(x), x.shape);
  }
  /// `more` holds further parts of the op's text.
  TextValue topK(const TextValue &scores, int64_t k, const std::string &more = "") {
    return op("xf.top_k " + scores.name + " k " + std::to_string(k) + more, typeOf(scores), {k});
  }
  TextValue gather(const TextValue &x, const TextValue &sel) {
    Shape shape = x.shape;
    shape.front() = sel.shape.front();
    return op("xf.gather " + x.name + "[" + sel.name + "]",
              typeOf(x.shape, x.element) + ", " + typeOf(sel.shape, "i32"), shape);
  }
  TextValue expertLinear(const TextValue &x, const TextValue &sel, int64_t experts, int64_t out,
                         const std::string &element, bool transposed, bool tensorEach) {
    int64_t in = x.shape.back();
    Shape stored = transposed ? Shape{experts, in, out} : Shape{experts, out, in};
    TextValue w = param(stored, element, tensorEach ? ".*" : "");
    return op("xf.expert_linear " + w.name + "[" + sel.name + "] * " + x.name +
                  (transposed ? " transposed" : ""),
              typeOf(stored, element) + ", " + typeOf(sel.shape, "i32") + ", " + typeOf(x),
              {sel.shape[0], out});
  }
  /// Two runs that read one bank.
  std::array<TextValue, 2> expertLinears(const std::array<TextValue, 2> &x,
                                         const std::array<TextValue, 2> &sel, int64_t experts,
                                         int64_t out, bool transposed) {
    int64_t in = x[0].shape.back();
    Shape stored = transposed ? Shape{experts, in, out} : Shape{experts, out, in},
          result{sel[0].shape[0], out};
    TextValue w = param(stored, "bf16", ".*");
    auto both = [](const std::string &a, const std::string &b) { return a + ", " + b; };
    std::string r = fresh("%r"), indices = typeOf(sel[0].shape, "i32");
    effect(r + ":2 = patch.expert_linears " + w.name + "[" + both(sel[0].name, sel[1].name) +
           "] * (" + both(x[0].name, x[1].name) + ")" + (transposed ? " transposed" : "") + " : " +
           typeOf(stored, "bf16") + ", (" + both(indices, indices) + "), (" +
           both(typeOf(x[0]), typeOf(x[1])) + ") -> (" + both(typeOf(result), typeOf(result)) +
           ")");
    return {TextValue{r + "#0", result}, TextValue{r + "#1", result}};
  }
  TextValue combine(const TextValue &w, const TextValue &y) {
    return op("xf.combine " + w.name + ", " + y.name, typeOf(w) + ", " + typeOf(y),
              Shape(y.shape.begin() + 1, y.shape.end()));
  }
  TextValue outer(const TextValue &w, const TextValue &x) {
    return op("xf.outer " + w.name + ", " + x.name, typeOf(w) + ", " + typeOf(x),
              {w.shape[0], x.shape[0]});
  }
  TextValue concat(const std::vector<TextValue> &parts, int64_t along = 0) {
    std::vector<std::string> names, types;
    Shape shape = parts.front().shape;
    shape[along] = 0;
    for (const TextValue &part : parts) {
      names.push_back(part.name);
      types.push_back(typeOf(part));
      shape[along] += part.shape[along];
    }
    std::string where = along ? " along " + std::to_string(along) : "";
    return op("xf.concat " + llvm::join(names, ", ") + where, llvm::join(types, ", "), shape);
  }
  TextValue broadcast(const TextValue &x, int64_t count) {
    Shape shape = x.shape;
    shape.front() = count;
    return op("xf.broadcast " + x.name, typeOf(x) + " to " + typeOf(shape), shape);
  }
  TextValue rope(int64_t frequencies) {
    return op("xf.setting \"" + fresh("rope") + "\"",
              typeOf(Shape{frequencies}) +
                  " = #xf.rope<base = 1.0e+03, dims = " + std::to_string(2 * frequencies) + ">",
              {frequencies});
  }
  TextValue rotary(const std::string &style, const TextValue &x, const TextValue &f,
                   const std::string &more = "") {
    return op("xf.rotary " + style + " " + x.name + " by " + f.name + more,
              typeOf(x) + ", " + typeOf(f), x.shape);
  }
  /// With `window` 0 the attention has no window; with an empty `softcap` scores are not capped.
  TextValue attention(const TextValue &q, const TextValue &k, const TextValue &v, int64_t window,
                      const std::string &softcap = "", const std::string &more = "") {
    std::string limit = softcap.empty() ? "" : " softcap " + softcap;
    if (window) {
      TextValue w = op("xf.setting \"" + fresh("window") + "\"",
                       "index = " + std::to_string(window) + " : i64", {});
      limit += " window " + w.name;
    }
    limit += more;
    Shape shape{q.shape[0], v.shape[1]};
    return op("xf.attention " + q.name + ", " + k.name + ", " + v.name + " scale 0.3" + limit,
              typeOf(q) + ", " + typeOf(k) + ", " + typeOf(v) + " -> " + typeOf(shape), shape);
  }

  std::string text() const {
    std::vector<std::string> names, arguments;
    for (const TextValue &v : outputs)
      names.push_back(v.name);
    for (const TextValue &v : inputs)
      arguments.push_back(v.name + ": " + typeOf(v));
    return "xf.block @" + name + "(" + llvm::join(arguments, ", ") + ") -> (" + types() + ") {\n" +
           body + "  xf.yield " + llvm::join(names, ", ") + " : " + types() + "\n}\n";
  }
  std::string types() const {
    std::vector<std::string> list;
    for (const TextValue &v : outputs)
      list.push_back(typeOf(v));
    return llvm::join(list, ", ");
  }

private:
  TextValue same(const std::string &name, const TextValue &a, const TextValue &b) {
    return op(name + " " + a.name + ", " + b.name, typeOf(a), a.shape);
  }
  TextValue apart(const std::string &name, const TextValue &a, const TextValue &b) {
    return op(name + " " + a.name + ", " + b.name, typeOf(a) + ", " + typeOf(b), a.shape);
  }

  std::string name, body;
  int next = 0;
  std::vector<TextValue> inputs, outputs;
};

constexpr int64_t kVocabulary = 19;

/// A model whose layers are `blocks`: each block's first output is the next block's input, and has
/// its width.
inline std::string modelText(const std::vector<BlockText> &blocks) {
  std::string text;
  for (const BlockText &block : blocks)
    text += block.text();
  Shape table{kVocabulary, blocks.front().getWidth()};
  TextValue x{"%x0", {table[1]}};
  text +=
      "xf.model @m {\n  %t = xf.token : tensor<i32>\n  %E = xf.param \"embed\" : " + typeOf(table) +
      "\n  %x0 = xf.embed %E[%t] : " + typeOf(table) + ", tensor<i32>\n";
  for (const auto &[i, block] : llvm::enumerate(blocks)) {
    std::string result = "%x" + std::to_string(i + 1);
    size_t count = block.getOutputs().size();
    text += "  " + result + (count > 1 ? ":" + std::to_string(count) : "") + " = xf.layer @" +
            block.getName() + "(" + x.name + ") at \"layers." + std::to_string(i) + ".\" : (" +
            typeOf(x) + ") -> (" + block.types() + ")\n";
    x = {count > 1 ? result + "#0" : result, block.getOutputs().front().shape};
  }
  Shape head{kVocabulary, x.shape.front()};
  return text + "  %H = xf.param \"head\" : " + typeOf(head) + "\n  %l = xf.linear %H * " + x.name +
         " : " + typeOf(head) + ", " + typeOf(x) +
         "\n  xf.yield %l : " + typeOf(Shape{kVocabulary}) + "\n}\n";
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_COMPILED_BLOCKTEXT_H
