// The complete parts of a batch as one directory; one patch of it as a file of its own.
#include "Store.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/GoOn.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::batch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;
namespace fs = llvm::sys::fs;

static constexpr StringRef mergedName = "records.jsonl";

/// The same settings, whatever the number of parts.
static Object withoutParts(Object settings) {
  settings["parts"] = 1;
  return settings;
}

namespace {

/// The directories of a batch's parts.
struct Parts {
  Object settings;
  std::map<int64_t, std::string> directoryOf; ///< window to directory
  Windows windows;
};

} // namespace

static Error addDirectory(StringRef directory, Parts &parts) {
  Expected<Object> settings = readSettings(directory);
  if (!settings)
    return settings.takeError();
  if (parts.settings.empty())
    parts.settings = *settings;
  else if (Error error = compareSettings(directory, *settings, parts.settings))
    return error;
  Expected<Windows> windows = windowsIn(directory);
  if (!windows)
    return windows.takeError();
  for (auto &[window, shards] : *windows)
    if (parts.directoryOf.emplace(window, directory.str()).second)
      parts.windows[window] = std::move(shards);
  return Error::success();
}

/// Fails where no directory says that a part is complete.
static Error checkComplete(llvm::ArrayRef<std::string> directories, const Object &settings) {
  int64_t parts = settings.getInteger("parts").value_or(1);
  Error errors = Error::success();
  for (int64_t part = 1; part <= parts; ++part) {
    std::string name = partName(part, parts);
    if (llvm::none_of(directories, [&](StringRef at) { return fs::exists(pathIn(at, name)); }))
      errors = llvm::joinErrors(
          std::move(errors),
          makeError(directories.front() + (directories.size() == 1 ? "" : " and the others") +
                    ": found no " + name + ": this part is not there or not complete; run part " +
                    llvm::Twine(part) + "/" + llvm::Twine(parts) + " again"));
  }
  return errors;
}

/// A second name where the file system allows it, else a copy.
static Error linkOrCopy(StringRef from, StringRef to) {
  if (::link(from.str().c_str(), to.str().c_str()) == 0)
    return Error::success();
  std::error_code code = fs::copy_file(from, to);
  return code ? makeError(to + ": cannot write: " + code.message()) : Error::success();
}

/// Writes a window's records in the order of lines and positions, and links its patches.
static Error mergeWindow(int64_t window, const Parts &parts, StringRef to,
                         llvm::raw_ostream &records, BatchCounts &counts) {
  StringRef from = parts.directoryOf.at(window);
  std::map<LinePosition, std::string> texts;
  for (int64_t shard : parts.windows.at(window)) {
    std::string patches = patchesName(window, shard);
    Error error = readRecords(pathIn(from, recordsName(window, shard)), [&](StringRef text,
                                                                            const Object &record) {
      counts.add(countsOf(record));
      texts[{record.getInteger("line").value_or(0), record.getInteger("position").value_or(-1)}] =
          text;
      return Error::success();
    });
    if (error)
      return error;
    if (fs::exists(pathIn(from, patches)))
      if (Error error = linkOrCopy(pathIn(from, patches), pathIn(to, patches)))
        return error;
  }
  for (const auto &[place, text] : texts)
    records << text << "\n";
  return Error::success();
}

Expected<BatchCounts> ctxc::mergeBatch(llvm::ArrayRef<std::string> directories, StringRef to) {
  Parts parts;
  for (StringRef directory : directories)
    if (Error error = addDirectory(directory, parts))
      return std::move(error);
  if (Error error = checkComplete(directories, parts.settings))
    return std::move(error);
  BatchCounts counts;
  Error error = writeNewDirectory(to, "a merged batch", [&](StringRef made) -> Error {
    Error failure = writeFileAtomically(
        pathIn(made, mergedName), [&](llvm::raw_pwrite_stream &records) -> Error {
          for (const auto &[window, shards] : parts.windows)
            if (Error error = mergeWindow(window, parts, made, records, counts))
              return error;
          return Error::success();
        });
    if (failure)
      return failure;
    if (Error error = writeSettings(made, withoutParts(std::move(parts.settings))))
      return error;
    return writePart(made, 1, 1, counts);
  });
  if (error)
    return std::move(error);
  return counts;
}

//===--- One patch -----------------------------------------------------------===//

/// The files of records of a batch, merged or not.
static Expected<std::vector<std::string>> recordFiles(StringRef directory) {
  std::vector<std::string> files;
  std::string merged = pathIn(directory, mergedName);
  if (fs::exists(merged))
    return std::vector<std::string>{merged};
  Expected<Windows> windows = windowsIn(directory);
  if (!windows)
    return windows.takeError();
  for (const auto &[window, shards] : *windows)
    for (int64_t shard : shards)
      files.push_back(pathIn(directory, recordsName(window, shard)));
  return files;
}

Error ctxc::takeFromBatch(StringRef directory, int64_t line, std::optional<int64_t> position,
                          StringRef path) {
  if (Error error = readSettings(directory).takeError())
    return error;
  Expected<std::vector<std::string>> files = recordFiles(directory);
  if (!files)
    return files.takeError();
  std::vector<std::pair<int64_t, std::string>> found; // position and file
  for (StringRef file : *files) {
    Error error = readRecords(file, [&](StringRef, const Object &record) {
      auto at = record.getInteger("position");
      auto shard = record.getString("shard");
      if (record.getInteger("line") == line && at && shard && at == position.value_or(*at))
        found.push_back({*at, shard->str()});
      return Error::success();
    });
    if (error)
      return error;
  }
  std::string asked = "line " + std::to_string(line) +
                      (position ? " at position " + std::to_string(*position) : "");
  if (found.empty())
    return makeError(directory + ": has no patch of " + asked);
  if (found.size() > 1)
    return makeError(directory + ": has " + llvm::Twine(found.size()) + " patches of " + asked +
                     "; expected its position, as " + llvm::Twine(line) + ":" +
                     llvm::Twine(found.front().first));
  auto patch = readFromShard(pathIn(directory, found.front().second), line, found.front().first);
  if (!patch)
    return patch.takeError();
  return writePatchFile(path, patch->first, patch->second);
}
