#include "Store.h"
#include "Lines.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/GoOn.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::batch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;
using llvm::json::Value;
namespace fs = llvm::sys::fs;

static constexpr StringRef settingsName = "batch.json";
static constexpr int64_t version = 1;

//===--- Names ---------------------------------------------------------------===//

/// `digits` at least, so that names are in the order of the numbers.
static std::string padded(int64_t number, size_t digits) {
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

static std::string numbered(StringRef what, int64_t window, int64_t shard, StringRef ending) {
  return (what + "-" + padded(window, 6) + "-" + padded(shard, 2) + ending).str();
}

std::string batch::recordsName(int64_t window, int64_t shard) {
  return numbered("records", window, shard, ".jsonl");
}

std::string batch::patchesName(int64_t window, int64_t shard) {
  return numbered("patches", window, shard, ".safetensors");
}

std::string batch::partName(int64_t part, int64_t parts) {
  return "part-" + std::to_string(part) + "-of-" + std::to_string(parts) + ".json";
}

/// The window and the number in "KIND-WINDOW-NUMBER.REST".
static std::optional<std::pair<int64_t, int64_t>> numbersOf(StringRef name, StringRef kind,
                                                            StringRef &rest) {
  int64_t window, shard;
  if (!name.consume_front(kind) || !name.consume_front("-") || name.consumeInteger(10, window) ||
      !name.consume_front("-") || name.consumeInteger(10, shard) || window < 0 || shard < 0)
    return std::nullopt;
  rest = name;
  return std::make_pair(window, shard);
}

/// Calls `see` with the name of each entry of a directory.
static Error eachName(StringRef directory, llvm::function_ref<Error(StringRef)> see) {
  std::error_code error;
  for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error))
    if (Error failure = see(llvm::sys::path::filename(i->path())))
      return failure;
  return error ? makeError(directory + ": " + error.message()) : Error::success();
}

Expected<Windows> batch::windowsIn(StringRef directory) {
  Windows windows;
  Error error = eachName(directory, [&](StringRef name) {
    StringRef rest;
    if (auto numbers = numbersOf(name, "records", rest); numbers && rest == ".jsonl")
      windows[numbers->first].insert(numbers->second);
    return Error::success();
  });
  if (error)
    return std::move(error);
  for (const auto &[window, shards] : windows)
    if (int64_t(shards.size()) != *shards.rbegin() + 1)
      return makeError(directory + ": has " + recordsName(window, *shards.rbegin()) +
                       " and not all of those before it; remove the files of this number, to have "
                       "them made again");
  return windows;
}

//===--- Records and settings ------------------------------------------------===//

/// An object of a file of ours.
static Expected<Object> parseObject(StringRef text, const llvm::Twine &name) {
  if (Error error = checkNesting(text, name.str()))
    return std::move(error);
  Expected<Value> value = llvm::json::parse(text);
  if (!value)
    return makeError(name + ": " + llvm::toString(value.takeError()));
  Object *object = value->getAsObject();
  if (!object)
    return makeError(name + ": expected a JSON object");
  return std::move(*object);
}

Error batch::readRecords(StringRef path, llvm::function_ref<Error(StringRef, const Object &)> see) {
  Expected<LineFile> file = LineFile::open(path);
  if (!file)
    return file.takeError();
  for (Line line;;) {
    Expected<bool> more = file->next(line);
    if (!more || !*more)
      return more.takeError();
    Expected<Object> record = parseObject(line.text, path + ": line " + llvm::Twine(line.number));
    if (!record)
      return record.takeError();
    if (Error error = see(line.text, *record))
      return error;
  }
}

BatchCounts batch::countsOf(const Object &record) {
  BatchCounts counts;
  counts.records = 1;
  counts.patches = record.getString("shard").has_value();
  counts.errors = record.getString("error").has_value();
  if (auto verified = record.getBoolean("verified")) {
    counts.compared = 1;
    counts.unequal = !*verified;
  }
  return counts;
}

void BatchCounts::add(const BatchCounts &other) {
  records += other.records;
  patches += other.patches;
  errors += other.errors;
  compared += other.compared;
  unequal += other.unequal;
}

Expected<Object> batch::readSettings(StringRef directory) {
  std::string path = pathIn(directory, settingsName);
  if (!fs::exists(path))
    return makeError(directory + ": has no " + settingsName + ", and is no directory of a batch");
  Expected<std::string> text = readSmallFile(path, 1 << 20);
  if (!text)
    return text.takeError();
  Expected<Object> object = parseObject(*text, path);
  if (!object)
    return object.takeError();
  Object *settings = object->getObject("settings");
  if (object->getString("format") != StringRef("ctxc-batch") ||
      object->getInteger("version") != version || !settings)
    return makeError(path + ": is not that of a batch of version " + llvm::Twine(version) +
                     "; name another directory with -o");
  return std::move(*settings);
}

static Error writeJson(StringRef path, Object object) {
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << llvm::formatv("{0:2}", Value(std::move(object))) << "\n";
    return Error::success();
  });
}

Error batch::writeSettings(StringRef directory, const Object &settings) {
  return writeJson(
      pathIn(directory, settingsName),
      Object{{"format", "ctxc-batch"}, {"version", version}, {"settings", Object(settings)}});
}

Error batch::writePart(StringRef directory, int64_t part, int64_t parts,
                       const BatchCounts &counts) {
  return writeJson(pathIn(directory, partName(part, parts)), Object{{"format", "ctxc-batch-part"},
                                                                    {"part", part},
                                                                    {"parts", parts},
                                                                    {"records", counts.records},
                                                                    {"patches", counts.patches},
                                                                    {"errors", counts.errors},
                                                                    {"compared", counts.compared},
                                                                    {"unequal", counts.unequal}});
}

//===--- The directory -------------------------------------------------------===//

std::string Store::path(StringRef name) const { return pathIn(request.directory, name); }

Store::~Store() {
  if (lock >= 0)
    ::close(lock);
}

/// Removes what a killed process of this part left unfinished.
Error Store::removeUnfinished() {
  return eachName(request.directory, [&](StringRef name) -> Error {
    for (StringRef kind : {"records", "patches"}) {
      StringRef rest;
      auto numbers = numbersOf(name, kind, rest);
      if (!numbers || !isOwn(numbers->first) || !rest.contains(".tmp-"))
        continue;
      if (std::error_code error = fs::remove(path(name)))
        return makeError(path(name) + ": " + error.message());
    }
    return Error::success();
  });
}

static Error checkIsNewOrEmpty(StringRef directory) {
  return eachName(directory, [&](StringRef name) -> Error {
    if (name.starts_with(".part-") || name.contains(".tmp-"))
      return Error::success(); // of a process that began at the same time, or was killed
    return makeError("-o: " + directory + ": has files, and is no directory of a batch; name " +
                     "another, or a new one");
  });
}

Expected<std::unique_ptr<Store>> Store::open(const BatchRequest &request, const Object &settings) {
  StringRef directory = request.directory;
  if (std::error_code code = fs::create_directories(directory))
    return makeError("-o: " + directory + ": " + code.message());
  std::unique_ptr<Store> store(new Store(request));
  std::string file = store->path(settingsName);
  if (!fs::exists(file)) {
    if (Error error = checkIsNewOrEmpty(directory))
      return std::move(error);
    if (Error error = writeSettings(directory, settings))
      return std::move(error);
  }
  // Also where it has just been written: another part may have begun at the same time.
  Expected<Object> found = readSettings(directory);
  if (!found)
    return found.takeError();
  if (Error error = compareSettings(file, *found, settings))
    return std::move(error);
  std::string part = partName(request.part, request.parts);
  if (Error error = openLocked(store->path("." + part + ".lock")).moveInto(store->lock))
    return std::move(error);
  if (Error error = store->removeUnfinished())
    return std::move(error);
  Expected<Windows> windows = windowsIn(directory);
  if (!windows)
    return windows.takeError();
  for (auto &[window, shards] : *windows)
    if (store->isOwn(window))
      store->windows[window] = std::move(shards);
  store->isComplete = fs::exists(store->path(part));
  return store;
}

Expected<std::set<LinePosition>> Store::begin(int64_t next) {
  window = next;
  shard = 0;
  std::set<LinePosition> recorded;
  auto known = windows.find(window);
  if (known == windows.end())
    return recorded;
  shard = known->second.size();
  for (int64_t number : known->second) {
    Error error =
        readRecords(path(recordsName(window, number)), [&](StringRef, const Object &record) {
          recorded.insert(
              {record.getInteger("line").value_or(0), record.getInteger("position").value_or(-1)});
          return Error::success();
        });
    if (error)
      return std::move(error);
  }
  return recorded;
}

Error Store::add(LinePosition place, Object record, const Patch *patch,
                 const PatchMetadata *metadata) {
  if (patch) {
    if (Error error = patches.add(place.first, *patch, *metadata))
      return error;
    record["shard"] = patchesName(window, shard);
  }
  records[place] = llvm::formatv("{0}\n", Value(std::move(record))).str();
  return patches.bytes() >= request.shardBytes ? end() : Error::success();
}

Error Store::end() {
  if (records.empty())
    return Error::success();
  if (!patches.empty())
    if (Error error = patches.write(path(patchesName(window, shard))))
      return error;
  Error error =
      writeFileAtomically(path(recordsName(window, shard)), [&](llvm::raw_pwrite_stream &os) {
        for (const auto &[place, text] : records)
          os << text;
        return Error::success();
      });
  if (error)
    return error;
  windows[window].insert(shard++);
  records.clear();
  return Error::success();
}

Expected<BatchCounts> Store::finish() {
  BatchCounts counts;
  for (const auto &[window, shards] : windows)
    for (int64_t number : shards) {
      Error error =
          readRecords(path(recordsName(window, number)), [&](StringRef, const Object &record) {
            counts.add(countsOf(record));
            return Error::success();
          });
      if (error)
        return std::move(error);
    }
  if (!isComplete)
    if (Error error = writePart(request.directory, request.part, request.parts, counts))
      return std::move(error);
  isComplete = true;
  return counts;
}
