#include "TensorProblems.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Count.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

using Missing = TensorProblems::Missing;
using Misshapen = TensorProblems::Misshapen;

/// `name` with an N in the place of each number that is a part of it: one for all layers.
std::string layerless(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (llvm::all_of(part, isDigit))
      part = "N";
  return join(parts, ".");
}

/// Tensors as a message lists them: those that differ in a number alone together, a few of them.
class NameList {
public:
  /// `what` follows the name: its shape.
  void add(StringRef name, const Twine &what) {
    Entry &entry = entries[layerless(name) + " " + what.str()];
    if (entry.count++ == 0)
      entry.one = name.str(), entry.what = what.str();
  }
  std::string text() const {
    constexpr size_t shown = 5;
    std::vector<std::string> names;
    for (const auto &[key, entry] : entries) {
      if (names.size() == shown) {
        names.push_back("others");
        break;
      }
      names.push_back(entry.count == 1 ? quoted(entry.one) + " " + entry.what
                                       : std::to_string(entry.count) + " of " +
                                             quoted(layerless(entry.one)) + " " + entry.what);
    }
    return join(names, ", ");
  }

private:
  struct Entry {
    size_t count = 0;
    std::string one, what;
  };
  std::map<std::string, Entry> entries;
};

/// A leading part of names, and the one that stands in its place in the file.
struct Prefixes {
  std::string expected, found;
  size_t count = 0; ///< of some missing tensors, how many are stored so
};

/// The number of parts that two names have in common at their ends.
size_t commonParts(StringRef a, StringRef b) {
  for (size_t count = 0;; ++count) {
    auto [restOfA, partOfA] = a.rsplit('.');
    auto [restOfB, partOfB] = b.rsplit('.');
    bool isLastA = !a.contains('.'), isLastB = !b.contains('.');
    if ((isLastA ? a : partOfA) != (isLastB ? b : partOfB))
      return count;
    if (isLastA || isLastB)
      return count + 1;
    a = restOfA, b = restOfB;
  }
}

/// `name` without its last `count` parts, with the point at the end.
StringRef without(StringRef name, size_t count) {
  size_t end = name.size();
  for (size_t i = 0; i < count; ++i) {
    size_t point = name.take_front(end).rfind('.');
    if (point == StringRef::npos)
      return "";
    end = point;
  }
  return name.take_front(end + 1);
}

/// The change of a prefix by which most of the missing tensors are stored ones.
Prefixes findPrefixes(ArrayRef<Missing> missing, ArrayRef<const TensorView *> unread) {
  std::map<std::pair<StringRef, StringRef>, size_t> counts;
  StringMap<SmallVector<const TensorView *, 2>> byEnd; // by the last two parts
  auto endOf = [](StringRef name) { return name.drop_front(without(name, 2).size()); };
  for (const TensorView *view : unread)
    byEnd[endOf(view->name)].push_back(view);
  const size_t step = std::max<size_t>(missing.size() / 64, 1); // some show what all have
  for (size_t i = 0; i < missing.size(); i += step) {
    const Missing &one = missing[i];
    auto there = byEnd.find(endOf(one.name));
    std::set<std::pair<StringRef, StringRef>> ofOne;
    if (there != byEnd.end())
      for (const TensorView *view : there->second)
        if (size_t common = commonParts(one.name, view->name); common > 1)
          ofOne.insert({without(one.name, common), without(view->name, common)});
    for (const auto &each : ofOne)
      ++counts[each];
  }
  Prefixes best;
  for (const auto &[pair, count] : counts)
    if (count > best.count)
      best = {pair.first.str(), pair.second.str(), count};
  return best;
}

/// Where `name` begins with `from`, the same with `to` in its place.
std::optional<std::string> replaced(StringRef name, StringRef from, StringRef to) {
  if (!name.consume_front(from))
    return std::nullopt;
  return (to + name).str();
}

std::string prefixText(StringRef prefix) {
  return prefix.empty() ? std::string("no prefix") : "the prefix " + quoted(prefix);
}

/// The number of the layer that a name is of, and what leads it.
std::optional<std::pair<StringRef, int64_t>> layerOf(StringRef name) {
  for (size_t point = name.find('.'); point != StringRef::npos; point = name.find('.', point + 1)) {
    StringRef rest = name.drop_front(point + 1);
    int64_t layer;
    if (!rest.consumeInteger(10, layer) && rest.starts_with("."))
      return std::pair(name.take_front(point + 1), layer);
  }
  return std::nullopt;
}

} // namespace

/// Takes those of `missing` out that are stored under another prefix, and of `unread` these.
static void reportPrefix(std::vector<Missing> &missing, std::vector<const TensorView *> &unread,
                         StringRef place, Problems &problems) {
  while (missing.size() > 1) {
    Prefixes prefixes = findPrefixes(missing, unread);
    if (prefixes.count < 2)
      return;
    size_t all = missing.size();
    StringSet<> stored, read;
    for (const TensorView *view : unread)
      stored.insert(view->name);
    std::string first;
    llvm::erase_if(missing, [&](const Missing &one) {
      auto other = replaced(one.name, prefixes.expected, prefixes.found);
      if (!other || !stored.contains(*other))
        return false;
      read.insert(*other);
      if (first.empty())
        first = one.name;
      return true;
    });
    llvm::erase_if(unread, [&](const TensorView *view) { return read.contains(view->name); });
    const std::string how =
        missing.empty() ? "all " + std::to_string(all) : std::to_string(all - missing.size());
    problems.add(place + ": " + how + " tensors are stored with " + prefixText(prefixes.found) +
                 " where this family has " + prefixText(prefixes.expected) + ", such as " +
                 quoted(*replaced(first, prefixes.expected, prefixes.found)) + "; expected " +
                 quoted(first) + ". Rename them");
  }
}

/// Takes those of `missing` out whose whole layer is not there.
static void reportLayers(std::vector<Missing> &missing, const Checkpoint &checkpoint,
                         StringRef place, Problems &problems) {
  std::map<std::string, std::set<int64_t>> stored, lost; // by what leads the layer's number
  for (const TensorView &view : checkpoint.tensors())
    if (auto layer = layerOf(view.name))
      stored[layer->first.str()].insert(layer->second);
  for (const Missing &one : missing)
    if (auto layer = layerOf(one.name); layer && !stored[layer->first.str()].count(layer->second))
      lost[layer->first.str()].insert(layer->second);
  for (const auto &[stem, layers] : lost) {
    const std::set<int64_t> &there = stored[stem];
    if (there.empty())
      continue; // that no layer is there has another cause
    size_t count = 0;
    llvm::erase_if(missing, [&, &stem = stem, &layers = layers](const Missing &one) {
      auto layer = layerOf(one.name);
      bool is = layer && layer->first == stem && layers.count(layer->second);
      count += is;
      return is;
    });
    SmallVector<std::string> numbers;
    for (int64_t layer : layers)
      numbers.push_back(std::to_string(layer));
    bool isRow = *layers.rbegin() - *layers.begin() + 1 == int64_t(layers.size());
    std::string which = layers.size() == 1 ? "layer " + numbers.front()
                        : isRow            ? "layers " + numbers.front() + " to " + numbers.back()
                                           : "layers " + join(numbers, ", ");
    problems.add(place + ": has no tensor of " + which + " (" + counted(count, "tensor") +
                 ", from " + quoted(stem + numbers.front() + ".") + " on); the last layer " +
                 "that it has is " + Twine(*there.rbegin()) +
                 ". Fetch what is missing, or correct the number of layers in the config");
  }
}

/// The names of the config's keys whose value is `number`.
static std::string keysOf(const json::Object &config, int64_t number) {
  std::vector<std::string> keys;
  for (const auto &[key, value] : config)
    if (value.getAsInteger() == number)
      keys.push_back(quoted(StringRef(key)));
  llvm::sort(keys);
  return join(keys, " or ");
}

static void reportShapes(ArrayRef<Misshapen> misshapen, const Checkpoint &checkpoint,
                         StringRef place, Problems &problems) {
  const StringRef source = checkpoint.isGguf() ? "the file's metadata" : "config.json";
  if (misshapen.size() == 1) {
    const TensorView &view = *misshapen.front().view;
    return problems.add(view.file + ": tensor " + quoted(view.name) + " has shape " +
                        shapeText(view.shape) + "; expected " +
                        shapeText(misshapen.front().expected) + " from " + source);
  }
  NameList names;
  std::set<std::pair<int64_t, int64_t>> sizes; // expected and found
  bool isOfSizes = true;
  for (const auto &[view, expected] : misshapen) {
    names.add(view->name, shapeText(view->shape) + " for " + shapeText(expected));
    isOfSizes &= view->shape.size() == expected.size();
    for (auto [from, to] : llvm::zip(expected, view->shape))
      if (from != to)
        sizes.insert({from, to});
  }
  std::string cause;
  if (isOfSizes && sizes.size() == 1) {
    auto [expected, found] = *sizes.begin();
    std::string keys = keysOf(checkpoint.config(), expected);
    cause = "; all have " + std::to_string(found) + " where it gives " + std::to_string(expected) +
            (keys.empty() ? "" : " (" + keys + ")");
  }
  problems.add(place + ": " + Twine(misshapen.size()) + " tensors have other shapes than " +
               source + " gives them: " + names.text() + cause + ". Correct " + source +
               ", or take the weights that belong to it");
}

static void reportMissing(ArrayRef<Missing> missing, StringRef head, StringRef place,
                          Problems &problems) {
  if (missing.size() == 1) {
    const Missing &one = missing.front();
    return problems.add(
        place + ": has no tensor " + quoted(one.name) + "; expected " + shapeText(one.shape) +
        (one.name == head ? ", the head, since the config does not say that it is the embedding "
                            "('tie_word_embeddings' = true)"
                          : ""));
  }
  NameList names;
  for (const Missing &one : missing)
    names.add(one.name, shapeText(one.shape));
  problems.add(place + ": lacks " + Twine(missing.size()) +
               " tensors that this family and the config ask for: " + names.text() +
               ". Fetch what is missing, or correct the config");
}

void TensorProblems::report(const Checkpoint &checkpoint, StringRef place,
                            std::vector<const TensorView *> unread, Problems &problems) const {
  std::vector<Missing> left = missing;
  reportPrefix(left, unread, place, problems);
  if (!hasAny && left.size() < missing.size())
    return; // what is left follows from the prefix: forms that the importer finds by their names
  reportLayers(left, checkpoint, place, problems);
  if (!left.empty())
    reportMissing(left, head, place, problems);
  if (!misshapen.empty())
    reportShapes(misshapen, checkpoint, place, problems);
  if (unread.empty())
    return;
  NameList names;
  for (const TensorView *view : unread)
    names.add(view->name, shapeText(view->shape));
  problems.add(place + ": has " + Twine(unread.size()) +
               (unread.size() > 1 ? " tensors that this family does not read: "
                                  : " tensor that this family does not read: ") +
               names.text() +
               "; expected none, since the model may be of another family. Correct 'model_type', "
               "or remove the tensors if they change no number");
}
