//===- Records.h - an experiment's data, one JSON object on each line -----===//
//
// DIR/records.jsonl. The first line holds the experiment's settings and the machine; each
// line after it is one record, usually for one token and setting, with a key of its own. A record
// is on the disk before the next one is computed, so that an experiment that was interrupted, in
// any way, continues where it stopped: opening the file again drops a last line that was cut off,
// and `has` says what need not be computed again.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPERIMENTS_RECORDS_H
#define CTXC_EXPERIMENTS_RECORDS_H

#include "ctxc/Numerics/Metrics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace ctxc::experiments {

/// A number in JSON: null if it is not finite.
llvm::json::Value number(double value);

/// The members of a record for `metrics`: match, linf, totalVariation, hellinger,
/// rankCorrelation, top1Difference, finite.
llvm::json::Object metricsJson(const TokenMetrics &metrics);

/// Adds the members of `from` to `to`.
void merge(llvm::json::Object &to, llvm::json::Object from);

class Records {
public:
  /// Opens DIRECTORY/records.jsonl, or begins it; creates the directory. `settings` determine the
  /// records: if the file has other settings, the error names each that differs. `about` (machine,
  /// versions, command) is stored when the file is begun and may differ later. Other errors: the
  /// file or the directory cannot be written; the file is not a file of records, or a line before
  /// its last is not JSON; another process has opened it.
  static llvm::Expected<std::unique_ptr<Records>>
  open(llvm::StringRef directory, llvm::json::Object settings, llvm::json::Object about);

  bool has(llvm::StringRef key) const { return keys.contains(key); }
  /// How many records the file had when it was opened.
  size_t found() const { return foundBefore; }
  size_t size() const { return keys.size(); }
  llvm::StringRef path() const { return file; }

  /// Appends `record` with its key, and flushes it. A record whose key exists already
  /// is not written again: if only some records of a computation existed, repeating it gives the
  /// same ones.
  llvm::Error add(llvm::StringRef key, llvm::json::Object record);

  /// Appends a line without a key, about the experiment itself, such as the seconds it took.
  llvm::Error note(llvm::json::Object line);

private:
  Records() = default;
  llvm::Error read(llvm::StringRef text, const llvm::json::Object &settings, size_t &whole);
  llvm::Error append(llvm::StringRef line);

  std::string file;
  llvm::StringSet<> keys;
  size_t foundBefore = 0;
  std::unique_ptr<llvm::raw_fd_ostream> os;
};

} // namespace ctxc::experiments

#endif // CTXC_EXPERIMENTS_RECORDS_H
