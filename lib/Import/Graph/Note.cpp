#include "Note.h"
#include "JsonFields.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include <map>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

static constexpr StringLiteral noteEntry = "extra/ctxc.json";

Expected<json::Object> ctxc::pt2::readJson(const Archive &archive, StringRef entry) {
  Expected<std::string> text = archive.read(entry);
  if (!text)
    return text.takeError();
  std::string name = (archive.name() + ": " + entry).str();
  Expected<json::Value> value = parseStrictJson(*text, name);
  if (!value)
    return value.takeError();
  json::Object *object = value->getAsObject();
  if (!object)
    return makeError(name + ": expected an object");
  return std::move(*object);
}

/// What torch's own entries say of shared memory: weights of one payload.
static Error readPayloads(const Archive &archive, Note &note) {
  StringRef entry = "data/weights/model_weights_config.json";
  if (!archive.has(entry))
    return Error::success();
  Expected<json::Object> file = readJson(archive, entry);
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": " + entry).str();
  auto config = objectIn(*file, "config", where);
  if (!config)
    return config.takeError();
  std::map<std::string, std::string> first; // by payload
  for (const auto &[name, value] : **config) {
    const json::Object *weight = value.getAsObject();
    if (!weight)
      return makeError(where + ": " + quoted(name) + " is no object");
    auto payload = textIn(*weight, "path_name", where);
    if (!payload)
      return payload.takeError();
    const json::Object *meta = weight->getObject("tensor_meta");
    const json::Object *device = meta ? meta->getObject("device") : nullptr;
    if (device && device->getString("type") == "meta")
      return makeError(archive.name() +
                       ": its weights have no memory, so that nothing says which "
                       "names are one tensor; write it with 'python -m ctxc.export', "
                       "which says so");
    auto [known, isNew] = first.try_emplace(payload->str(), StringRef(name).str());
    if (!isNew)
      note.aliases[StringRef(name)] = known->second;
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
  Expected<json::Object> file = readJson(archive, noteEntry);
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": " + noteEntry).str();
  if (std::optional<int64_t> format = file->getInteger("format"); format != 1)
    return makeError(where + ": found format " + Twine(format.value_or(0)) +
                     ", expected 1; write the file with the ctxc.export of this version");
  auto inputs = objectIn(*file, "inputs", where);
  if (!inputs)
    return inputs.takeError();
  for (const auto &[name, role] : **inputs)
    note.roles[StringRef(name)] = role.getAsString().value_or("").str();
  auto shared = arrayIn(*file, "shared", where);
  if (!shared)
    return shared.takeError();
  for (const json::Value &group : **shared) {
    const json::Array *names = group.getAsArray();
    if (!names || names->empty() ||
        any_of(*names, [](const json::Value &name) { return !name.getAsString(); }))
      return makeError(where + ": 'shared' has a group that is no list of names");
    for (const json::Value &name : drop_begin(*names))
      note.aliases[*name.getAsString()] = names->front().getAsString()->str();
  }
  auto visible = objectIn(*file, "visible", where);
  if (!visible)
    return visible.takeError();
  for (const auto &[name, value] : **visible)
    if (value.getAsBoolean().value_or(false))
      note.visible.insert(StringRef(name));
  return note;
}
