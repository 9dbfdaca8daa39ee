#include "Note.h"
#include "JsonFields.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/ForeignText.h"
#include <map>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

static constexpr size_t mostOfTaken = 300;
static constexpr StringLiteral noteEntry = "extra/ctxc.json";

Expected<JsonTree> ctxc::pt2::readJson(const Archive &archive, StringRef entry) {
  Expected<std::string> text = archive.read(entry);
  if (!text)
    return text.takeError();
  std::string name = (archive.name() + ": " + entry).str();
  Expected<JsonTree> tree = JsonTree::parse(std::move(*text), name);
  if (tree && !tree->root().isObject())
    return makeError(name + ": expected an object");
  return tree;
}

/// What torch's own entries say of shared memory: weights of one payload.
static Error readPayloads(const Archive &archive, Note &note) {
  StringRef entry = "data/weights/model_weights_config.json";
  if (!archive.has(entry))
    return Error::success();
  Expected<JsonTree> file = readJson(archive, entry);
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": " + entry).str();
  auto config = objectIn(file->root(), "config", where);
  if (!config)
    return config.takeError();
  std::map<std::string, std::string> first; // by payload
  for (JsonView weight : *config) {
    if (!weight.isObject())
      return makeError(where + ": " + quoted(weight.key()) + " is no object");
    auto payload = textIn(weight, "path_name", where);
    if (!payload)
      return payload.takeError();
    if (weight["tensor_meta"]["device"]["type"].text() == "meta")
      return makeError(archive.name() +
                       ": its weights have no memory, so that nothing says which "
                       "names are one tensor; write it with 'python -m ctxc.export', "
                       "which says so");
    auto [known, isNew] = first.try_emplace(payload->str(), weight.key().str());
    if (!isNew)
      note.aliases[weight.key()] = known->second;
  }
  return Error::success();
}

/// A list of numbers, none negative.
static bool readSizes(JsonView list, SmallVectorImpl<int64_t> &to) {
  constexpr size_t mostAxes = 64;
  if (!list.isArray() || list.size() > mostAxes)
    return false;
  for (JsonView each : list) {
    to.push_back(each.integer().value_or(-1));
    if (to.back() < 0)
      return false;
  }
  return true;
}

/// Where the parameters are in tensors of the author's; a file of an older version does not say it.
static Error readParts(JsonView note, Note &to, StringRef where) {
  if (!note["parameters"])
    return Error::success();
  auto parameters = objectIn(note, "parameters", where);
  if (!parameters)
    return parameters.takeError();
  for (JsonView parameter : *parameters) {
    StoredPart part;
    part.name = parameter.key().str();
    part.of = parameter.isObject() ? parameter["of"].text().value_or("").str() : "";
    if (part.of.empty())
      return makeError(
          where + ": 'parameters' has " + quoted(part.name) +
          ", which says of no tensor that it is a part of it; expected its name as 'of'");
    part.offset = parameter["offset"].integer().value_or(-1);
    if (part.offset < 0 || !readSizes(parameter["dims"], part.dims) ||
        !readSizes(parameter["strides"], part.strides) || part.dims.size() != part.strides.size())
      return makeError(where + ": 'parameters' has " + quoted(part.name) +
                       " at a place that is none; expected 'offset', and as many 'dims' as "
                       "'strides', all of them 0 or more");
    to.parts.push_back(std::move(part));
  }
  return Error::success();
}

Expected<Note> ctxc::pt2::readNote(const Archive &archive) {
  Note note;
  if (!archive.has(noteEntry)) {
    if (Error error = readPayloads(archive, note))
      return std::move(error);
    return note;
  }
  Expected<JsonTree> file = readJson(archive, noteEntry);
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": " + noteEntry).str();
  if (std::optional<int64_t> format = file->root()["format"].integer(); format != 1)
    return makeError(where + ": found format " + Twine(format.value_or(0)) +
                     ", expected 1; write the file with the ctxc.export of this version");
  auto inputs = objectIn(file->root(), "inputs", where);
  if (!inputs)
    return inputs.takeError();
  for (JsonView role : *inputs)
    note.roles[role.key()] = role.text().value_or("").str();
  auto shared = arrayIn(file->root(), "shared", where);
  if (!shared)
    return shared.takeError();
  for (JsonView group : *shared) {
    if (!group.isArray() || !group.size() ||
        any_of(group, [](JsonView name) { return !name.text(); }))
      return makeError(where + ": 'shared' has a group that is no list of names");
    for (JsonView name : drop_begin(group))
      note.aliases[*name.text()] = (*group.begin()).text()->str();
  }
  if (Error error = readParts(file->root(), note, where))
    return std::move(error);
  note.taken = printableLine(file->root()["taken"].text().value_or("").take_front(mostOfTaken));
  auto visible = objectIn(file->root(), "visible", where);
  if (!visible)
    return visible.takeError();
  for (JsonView value : *visible)
    if (value.flag().value_or(false))
      note.visible.insert(value.key());
  return note;
}
