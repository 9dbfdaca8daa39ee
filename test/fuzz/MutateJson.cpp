// JSON changed as a tree, and the header of a safetensors file, with lengths and offsets that fit.
#include "Mutate.h"
#include "ctxc/Checkpoint/DType.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <vector>

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;
namespace json = llvm::json;

static void collect(json::Value &value, std::vector<json::Value *> &nodes) {
  nodes.push_back(&value);
  if (json::Object *object = value.getAsObject())
    for (auto &[key, member] : *object)
      collect(member, nodes);
  if (json::Array *array = value.getAsArray())
    for (json::Value &element : *array)
      collect(element, nodes);
}

static std::string keyOf(json::Object &object, Random &random) {
  if (object.empty())
    return "";
  auto at = object.begin();
  std::advance(at, random.below(object.size()));
  return at->first.str();
}

static std::string textOf(StringRef text) { return json::fixUTF8(plainly(text, text.size() + 24)); }

static json::Value scalar(Random &random) {
  switch (random.below(7)) {
  case 0:
    return nullptr;
  case 1:
    return random.oneIn(2);
  case 2:
    return double(boundary(random)) / 3;
  case 3:
    return random.oneIn(2) ? 1e308 : 1e-320;
  case 4:
    return "";
  default:
    return boundary(random);
  }
}

/// Changes a member or an element, its place, or its name.
static void changeInside(json::Value &node, const json::Value &other, Random &random) {
  if (json::Array *array = node.getAsArray()) {
    size_t at = array->empty() ? 0 : random.below(array->size());
    if (!array->empty() && random.oneIn(2))
      array->erase(array->begin() + at);
    else if (!array->empty() && random.oneIn(2))
      for (size_t i = 0, n = 1 + random.below(16); i < n; ++i)
        array->insert(array->begin() + at, json::Value((*array)[at]));
    else
      array->insert(array->begin() + at, other);
    return;
  }
  json::Object &object = *node.getAsObject();
  std::string key = keyOf(object, random);
  json::Value value = object.empty() ? other : *object.get(key);
  if (!random.oneIn(3))
    object.erase(key);
  if (!random.oneIn(3))
    object[textOf(key)] = random.oneIn(2) ? value : other;
}

static void change(json::Value &root, Random &random) {
  std::vector<json::Value *> nodes;
  collect(root, nodes);
  json::Value &node = *nodes[random.below(nodes.size())];
  json::Value other = *nodes[random.below(nodes.size())];
  if ((node.getAsObject() || node.getAsArray()) && !random.oneIn(4))
    return changeInside(node, other, random);
  if (auto text = node.getAsString(); text && random.oneIn(2)) {
    node = textOf(*text);
    return;
  }
  if (auto number = node.getAsInteger(); number && random.oneIn(2)) {
    node = int64_t(uint64_t(*number) + (random.oneIn(2) ? 1 : -1) * (1 + random.below(3)));
    return;
  }
  if (random.oneIn(16)) {
    json::Array deep;
    deep.push_back(std::move(node));
    node = std::move(deep);
    return;
  }
  node = random.oneIn(2) ? other : scalar(random);
}

static std::string written(const json::Value &value) { return llvm::formatv("{0}", value).str(); }

std::string fuzz::mutateJson(StringRef text, Random &random) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return "";
  }
  for (size_t i = 0, n = 1 + random.below(3); i < n; ++i)
    change(*value, random);
  return written(*value);
}

std::string fuzz::mutateJsonLines(StringRef text, Random &random) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (lines.empty())
    return "";
  std::vector<std::string> changed(lines.begin(), lines.end());
  std::string &line = changed[random.below(changed.size())];
  if (random.oneIn(4))
    changed.push_back(line);
  else if (random.oneIn(8))
    line = changed.back().substr(0, random.below(changed.back().size() + 1));
  else
    line = mutateJson(line, random);
  return llvm::join(changed, "\n") + (random.oneIn(6) ? "" : "\n");
}

//===----------------------------------------------------------------------===//
// safetensors
//===----------------------------------------------------------------------===//

/// Gives each tensor the bytes that its type and shape need, one after the other; returns their
/// sum.
static uint64_t layOut(json::Object &header) {
  uint64_t end = 0;
  std::vector<StringRef> names;
  for (auto &[name, entry] : header)
    names.push_back(name);
  llvm::sort(names);
  for (StringRef name : names) {
    json::Object *entry = header.getObject(name);
    const json::Array *shape = entry ? entry->getArray("shape") : nullptr;
    auto dtype = dtypeNamed(entry ? entry->getString("dtype").value_or("") : "");
    if (!shape || !dtype)
      continue;
    uint64_t bits = bitsOf(*dtype);
    for (const json::Value &size : *shape)
      bits = llvm::checkedMulUnsigned<uint64_t>(bits, size.getAsInteger().value_or(0)).value_or(0);
    uint64_t begin = end;
    end += bits / 8 < (1 << 16) ? bits / 8 : 0;
    (*entry)["data_offsets"] = json::Array{int64_t(begin), int64_t(end)};
  }
  return end;
}

std::string fuzz::mutateSafetensors(StringRef bytes, size_t most, Random &random) {
  if (bytes.size() < 10)
    return "";
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8)
    return "";
  std::string data = bytes.substr(8 + length).str();
  llvm::Expected<json::Value> header = json::parse(bytes.substr(8, length));
  if (!header || !header->getAsObject()) {
    llvm::consumeError(header.takeError());
    return "";
  }
  if (!data.empty() && random.oneIn(5)) {
    data = plainly(data, data.size());
    data.resize(bytes.size() - 8 - length);
  } else {
    for (size_t i = 0, n = 1 + random.below(3); i < n; ++i)
      change(*header, random);
    if (json::Object *object = header->getAsObject(); object && !random.oneIn(5))
      data.resize(layOut(*object));
  }
  std::string text = written(*header), result(8, '\0');
  text.resize((text.size() + 7) / 8 * 8, ' ');
  llvm::support::endian::write64le(result.data(), text.size());
  return result + text + data;
}
