// Writes the program of a description with the numbers of one config.
#include "../HuggingFace/Family.h"
#include "Expression.h"
#include "Instance.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;
using namespace ctxc::described;

/// What a double counts exactly, and the most entries of a head.
static constexpr double mostCounted = 9007199254740992;
static constexpr int mostRotated = 1 << 16;

static std::string shown(double number) {
  std::string text;
  raw_string_ostream(text) << format("%g", number);
  return text;
}

/// Of sizes, and of what a rope multiplies the scores of attention by.
double Instance::value(StringRef expression) {
  return described::evaluate(expression, [&](StringRef key) {
    StringRef path = key;
    auto rope = path.consume_back(".scores") ? ropes.find(path) : ropes.end();
    return rope != ropes.end() ? rope->second.scores : size(key);
  });
}

void Instance::fail(const Twine &message) {
  if (!failed)
    config.problem(message);
  failed = true;
}

void Instance::notWhole(StringRef expression, double found) {
  fail(expression + " is " + shown(found) + "; expected a whole number of at least 0");
}

void Instance::writeNumber(StringRef expression, bool isInteger) {
  double found = value(expression);
  if (!isInteger) {
    raw_string_ostream(out) << format("%.17e", found);
    if (!std::isfinite(found))
      fail(expression + " is " + shown(found) + "; expected a finite number");
    return;
  }
  if (!(found >= 0 && found <= mostCounted) || found != std::floor(found)) {
    notWhole(expression, found);
    found = 1;
  }
  out += std::to_string(int64_t(found));
}

/// `arguments` are the path of the rope's parameters, or its base, how many entries of a head it
/// rotates, of how many it has a frequency, where those are more, and how many of these stand
/// before them.
void Instance::writeRope(StringRef arguments) {
  auto [known, isNew] = ropeTexts.try_emplace(arguments);
  if (!isNew) {
    out += known->second;
    return;
  }
  auto [path, counts] = arguments.split(", ");
  auto [dims, others] = counts.split(", ");
  auto [all, first] = others.split(", ");
  double sign = path.consume_front("-") ? -1 : 1; // a rotation backwards
  Rope rope = ropes[path];
  if (double base; !path.getAsDouble(base)) // one that no key says
    rope.base = base;
  double entries = value(dims), whole = all.empty() ? entries : value(all);
  double before = first.empty() ? 0 : value(first);
  if (!(entries >= 2 && before >= 0 && before + entries <= whole && whole <= mostRotated) ||
      std::fmod(entries, 2) != 0) {
    fail(dims + " is " + shown(entries) + ", of " + shown(whole) +
         " entries of a head to rotate; expected an even number from 2 to " + Twine(mostRotated));
    return;
  }
  rope.entries = int64_t(entries);
  if (object(object(description, "ropes"), path).getBoolean("proportional").value_or(false))
    rope.base = std::pow(rope.base, entries / whole); // counted over the whole head
  if (int64_t given = rope.divisors.size(); given && given != rope.entries / 2) {
    fail("short_factor has " + Twine(given) + " numbers; expected " + Twine(rope.entries / 2) +
         ", one for each pair of a head that is rotated");
    return;
  }
  SmallVector<double> frequencies;
  mlir::Attribute attribute = rope.frequencies(&context, rope.entries);
  if (auto listed = dyn_cast<mlir::DenseElementsAttr>(attribute))
    llvm::append_range(frequencies, listed.getValues<float>());
  else
    llvm::append_range(frequencies, cast<xf::RopeAttr>(attribute).getFrequencies());
  std::string text = "dense<[";
  raw_string_ostream os(text);
  StringRef zero = sign < 0 ? "-0.0" : "0.0";
  for (int64_t i = 0; i < int64_t(before); i += 2)
    os << zero << ", ";
  llvm::interleaveComma(frequencies, os, [&](double x) { os << format("%.9e", sign * x); });
  for (int64_t i = int64_t(before) + rope.entries; i < int64_t(whole); i += 2)
    os << ", " << zero;
  text += "]>";
  out += text;
  ropeTexts[arguments] = std::move(text);
}

/// `arguments` are the number of heads and a factor of ALiBi's slopes: those of a power of two of
/// heads, and behind them every second one of twice as many.
void Instance::writeSlopes(StringRef arguments) {
  auto [count, by] = arguments.split(", ");
  double heads = value(count), factor = value(by);
  if (!(heads >= 1 && heads <= mostRotated) || heads != std::floor(heads)) {
    fail(count + " is " + shown(heads) + "; expected from 1 to " + Twine(mostRotated) +
         " heads, each of which has a slope");
    return;
  }
  double power = double(llvm::bit_floor(uint64_t(heads)));
  raw_string_ostream os(out);
  os << "dense<[";
  for (double i = 0; i < heads; ++i) {
    double exponent = i < power ? 8 * (i + 1) / power : 4 * (2 * (i - power) + 1) / power;
    os << (i ? ", " : "") << format("%.9e", factor * std::exp2(-exponent));
  }
  os << "]>";
}

void Instance::writeLine(StringRef line, Names names, std::optional<size_t> layer) {
  std::string named = line.str();
  for (const auto &[from, to] : names)
    for (size_t at = 0; (at = named.find(from, at)) != std::string::npos; at += to.size())
      named.replace(at, from.size(), to);
  size_t start = out.size();
  write(named, layer);
  checkTensors(StringRef(out).substr(start));
  out += '\n';
}

/// Sizes that are each in range may together be past every count.
void Instance::checkTensors(StringRef line) {
  for (StringRef rest = line.split("tensor<").second; !rest.empty();
       rest = rest.split("tensor<").second) {
    double entries = 1;
    StringRef dims = rest.take_while([](char c) { return isDigit(c) || c == 'x'; });
    for (auto [size, behind] = dims.split('x'); !size.empty();
         std::tie(size, behind) = behind.split('x')) {
      double count = 0;
      size.getAsDouble(count);
      entries *= count;
    }
    if (entries == 0 || entries > mostCounted)
      fail("a tensor of " + dims.rtrim('x') + " entries; expected from 1 to " + shown(mostCounted) +
           " of them, by other sizes");
  }
}

void Instance::writeLines(const json::Array &lines, Names names, StringRef indent) {
  for (const json::Value &line : lines) {
    out += indent;
    writeLine(line.getAsString().value_or(""), names, std::nullopt);
  }
}

/// What a rotation by the rope at `path` multiplies by, where it is not 1.
void Instance::writeAmplitude(StringRef path) {
  if (double amplitude = ropes[path].amplitude; amplitude != 1)
    raw_string_ostream(out) << format(" amplitude %.9e", amplitude);
}

/// `run` says how often its form stands, separated by commas.
void Instance::writeRun(StringRef run, std::optional<size_t> layer) {
  auto [count, form] = run.split("; ");
  double often = value(count);
  if (!(often >= 1 && often <= mostRotated) || often != std::floor(often)) {
    fail(count + " is " + shown(often) + "; expected from 1 to " + Twine(mostRotated) +
         " values to join");
    return;
  }
  for (double i = 0; i < often; ++i) {
    out += i ? ", " : "";
    write(form, layer);
  }
}

/// Writes `form`, in which "$(…)" is an integer, a rope or slopes, "$f(…)" a number, "$a(…)" an
/// activation, "$m(…)" the factor of a rotation, "$r(…)" a run, and "$i" the layer.
void Instance::write(StringRef form, std::optional<size_t> layer) {
  while (true) {
    auto [before, behind] = form.split('$');
    out += before;
    if (behind.empty())
      return;
    if (behind.consume_front("i")) {
      out += std::to_string(layer.value_or(0));
      form = behind;
      continue;
    }
    char kind = behind.front();
    behind = behind.drop_front(kind == '(' ? 1 : 2);
    size_t end = 0;
    for (int depth = 1; end < behind.size(); ++end) {
      depth += behind[end] == '(' ? 1 : behind[end] == ')' ? -1 : 0;
      if (depth == 0)
        break;
    }
    StringRef inside = behind.take_front(end);
    form = behind.drop_front(end + 1);
    if (kind == 'a')
      out += words[inside];
    else if (kind == 'm')
      writeAmplitude(inside);
    else if (kind == 'r')
      writeRun(inside, layer);
    else if (inside.consume_front("rope(") && inside.consume_back(")"))
      writeRope(inside);
    else if (inside.consume_front("slopes(") && inside.consume_back(")"))
      writeSlopes(inside);
    else
      writeNumber(inside, kind == '(');
  }
}

/// The blocks that layers have go to the text; the layers are the result. `last` is what the first
/// layer reads, and what the last one gives.
std::string Instance::writeLayers(std::string &last) {
  const json::Array &blocks = array(description, "blocks");
  std::string name = type, calls;
  llvm::replace(name, '-', '_');
  DenseMap<int64_t, std::string> names; // of blocks that are written
  for (int64_t i = 0, layers = layerCount(); i < layers && !failed; ++i) {
    const json::Object *layer = choose(array(description, "layers"), i, "layer " + Twine(i));
    if (!layer)
      return "";
    int64_t block = layer->getInteger("block").value_or(0);
    auto [known, isNew] = names.try_emplace(block, name);
    if (isNew) {
      if (names.size() > 1)
        known->second += "_" + std::to_string(names.size());
      writeLines(*blocks[block].getAsArray(), {{"@BLOCK", "@" + known->second}}, "  ");
    }
    std::string result = "%layer_" + std::to_string(i);
    std::swap(out, calls);
    out += "    ";
    writeLine(result + " = " + layer->getString("call").value_or("").str(),
              {{"@BLOCK", "@" + known->second}, {"%in", last}}, i);
    std::swap(out, calls);
    last = result;
  }
  return calls;
}

std::string Instance::program() {
  read();
  if (failed || !problems.empty())
    return "";
  std::string last = description.getString("entry").value_or("").str();
  std::string layers = writeLayers(last);
  const json::Object *before = choose(array(description, "before"), std::nullopt, "embedding");
  const json::Object *behind = choose(array(description, "behind"), std::nullopt, "head");
  if (!before || !behind)
    return "";
  int64_t positions = 0; // to which the rotations hold
  for (const auto &rope : ropes)
    if (int64_t own = rope.second.positions)
      positions = positions ? std::min(positions, own) : own;
  std::string lines;
  std::swap(out, lines);
  writeLines(array(*before, "lines"), {}, "    ");
  std::swap(out, lines);
  // A limit of the program's own is in front of its ops.
  StringRef first = lines, own = first;
  if (own.consume_front("    positions ")) {
    std::tie(own, first) = own.split('\n');
    int64_t limit = 0;
    if (!own.getAsInteger(10, limit) && limit > 0)
      positions = positions ? std::min(positions, limit) : limit;
  }
  out += "  xf.model @model " + (positions ? "positions " + std::to_string(positions) + " " : "") +
         "{\n" + first.str();
  out += layers;
  writeLines(array(*behind, "lines"), {{"%last", last}}, "    ");
  return failed ? "" : "module {\n" + out + "  }\n}\n";
}

std::string described::programOf(const json::Object &description, ConfigReader &config,
                                 Problems &problems, mlir::MLIRContext &context) {
  ConfigReader *read = &config;
  if (std::optional<StringRef> part = description.getString("within")) {
    read = config.object(*part);
    if (!read) {
      config.problem("model_type", "needs an object '" + *part + "' beside it");
      return "";
    }
    for (const json::Value &key : *description.getArray("beside"))
      config.unread({{*key.getAsString()}});
  }
  Instance instance(description, *read, problems, context);
  std::string program = instance.program();
  if (read != &config)
    instance.checkAround(config);
  config.finish();
  return problems.empty() ? program : "";
}
