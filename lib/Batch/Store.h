//===- Store.h - the directory of a batch -----------------------------------===//
//
// What is in it, which part of it a process may write, and how it grows: a file of patches first,
// then the file of the records that name them. A file of records is the one that counts.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_BATCH_STORE_H
#define CTXC_LIB_BATCH_STORE_H

#include "ctxc/Batch/Batch.h"
#include "ctxc/Export/PatchShard.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace ctxc::batch {

/// A file's name in the directory: "records-000012-03.jsonl" of window 12.
std::string recordsName(int64_t window, int64_t shard);
std::string patchesName(int64_t window, int64_t shard);
std::string partName(int64_t part, int64_t parts);

/// The numbers of the files of records of each window, ascending.
using Windows = std::map<int64_t, std::set<int64_t>>;
llvm::Expected<Windows> windowsIn(llvm::StringRef directory);

/// Calls `see` with each record of a file, as it stands there and as JSON.
llvm::Error
readRecords(llvm::StringRef path,
            llvm::function_ref<llvm::Error(llvm::StringRef text, const llvm::json::Object &)> see);

/// What a record counts for.
BatchCounts countsOf(const llvm::json::Object &record);

/// The settings of the batch in a directory. Errors: there is none, or of another version.
llvm::Expected<llvm::json::Object> readSettings(llvm::StringRef directory);
/// batch.json of such settings.
llvm::Error writeSettings(llvm::StringRef directory, const llvm::json::Object &settings);

/// The file that says that a part is complete.
llvm::Error writePart(llvm::StringRef directory, int64_t part, int64_t parts,
                      const BatchCounts &counts);

/// The line and the position (−1: the line as a whole) of a record.
using LinePosition = std::pair<int64_t, int64_t>;

class Store {
public:
  /// Opens the request's directory for its part, for this process alone.
  static llvm::Expected<std::unique_ptr<Store>> open(const BatchRequest &request,
                                                     const llvm::json::Object &settings);
  ~Store();

  bool isOwn(int64_t window) const { return window % request.parts == request.part - 1; }
  /// Whether nothing of the window is missing: a later one has been begun.
  bool isSettled(int64_t window) const {
    return isComplete || (windows.count(window) && window != windows.rbegin()->first);
  }

  /// Goes on with a window. Returns what is recorded of it.
  llvm::Expected<std::set<LinePosition>> begin(int64_t window);
  /// Adds a record, and the patch that belongs to it (null: none).
  llvm::Error add(LinePosition place, llvm::json::Object record, const Patch *patch = nullptr,
                  const PatchMetadata *metadata = nullptr);
  /// Writes what the window has besides.
  llvm::Error end();
  /// All windows are done. Returns what the files of the part hold.
  llvm::Expected<BatchCounts> finish();

private:
  explicit Store(const BatchRequest &request) : request(request) {}
  std::string path(llvm::StringRef name) const;
  llvm::Error removeUnfinished();

  const BatchRequest &request;
  int lock = -1;
  Windows windows; ///< of the part
  bool isComplete = false;
  int64_t window = 0, shard = 0;
  PatchShard patches;
  std::map<LinePosition, std::string> records;
};

} // namespace ctxc::batch

#endif // CTXC_LIB_BATCH_STORE_H
