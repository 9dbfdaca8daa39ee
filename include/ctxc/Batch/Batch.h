//===- Batch.h - patches and numbers of many prompts, in a directory -------===//
//
// A file of JSON lines has the requests; the results are written to a directory (docs/batch.md):
//
//   {"id": "q17", "prompt": "And David said", "make": ["patch", "metrics"], "positions": "all"}
//
//   batch.json                          the request; a run that continues must have the same
//   records-000000-00.jsonl             a record for each position, or for a line that failed
//   patches-000000-00.safetensors       the patches that these records name (PatchShard.h)
//   part-1-of-1.json exists when all lines of the part are done
//
// The lines are divided into windows of WINDOW lines. Within a window they are sorted by their
// tokens, so that prompts with a common beginning follow one another and the beginning is read
// once. The results of a window depend only on its lines: a run that was killed can continue with
// what is missing, several parts can share the windows, and the files are the same byte for byte.
//
// A file of records appears complete, and after the file of patches that its records name.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_BATCH_BATCH_H
#define CTXC_BATCH_BATCH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ctxc {

class Model;

/// What is made for a position.
struct BatchMake {
  bool patch = false;   ///< the patch itself
  bool metrics = false; ///< the patched and the unpatched run against the full run
  bool layers = false;  ///< norms, zeros and predicted replay error, layer by layer
};

/// The words of a list such as {"patch", "metrics"}. Errors: an unknown word; none.
llvm::Expected<BatchMake> batchMake(llvm::ArrayRef<llvm::StringRef> words);

struct BatchRequest {
  std::string prompts;   ///< the file of JSON lines
  std::string directory; ///< created if it does not exist
  /// The defaults for lines that do not have them.
  BatchMake make = {/*patch=*/true};
  bool allPositions = false; ///< every position from 1 on; otherwise the last
  int64_t part = 1, parts = 1;
  int64_t window = 64;               ///< lines
  uint64_t shardBytes = 64ull << 20; ///< a file of patches ends when its tensors have this size
  /// Called with the number of lines that are done, and of all lines.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

/// What a part's files hold.
struct BatchCounts {
  int64_t records = 0;
  int64_t patches = 0;
  int64_t errors = 0;   ///< records of lines that failed, with the reason
  int64_t compared = 0; ///< records with metrics
  int64_t unequal = 0;  ///< compared records whose patched run differs from the full run

  void add(const BatchCounts &other);
};

struct BatchResult {
  BatchCounts counts;
  int64_t added = 0; ///< the records that this call made; the others existed before
  /// In this call: how many tokens its full runs have, and how many of these were computed; the
  /// others were in the KV cache from the previous prompt.
  int64_t tokens = 0, read = 0;
};

/// Makes everything that the file requests and that the directory does not have yet. A line whose
/// request cannot be fulfilled gets a record that says why. Errors: the file or the directory
/// cannot be read or written; the directory belongs to another batch, or another process works on
/// the part; the model cannot be run, or reads prompts with rounded activations
/// (LoadOptions::prompts), so that results would depend on what is read together.
llvm::Expected<BatchResult> runBatch(Model &model, const BatchRequest &request);

/// Merges the complete parts of one batch, from any number of directories, into the new directory
/// `to`: the files of patches, and one records.jsonl, in the order of the lines. Errors: parts of
/// different batches; a part that is missing or not complete.
llvm::Expected<BatchCounts> mergeBatch(llvm::ArrayRef<std::string> directories, llvm::StringRef to);

/// Writes the patch of a line at a position (none: the line's only patch) to a separate file
/// (PatchFile.h). Errors: the batch has no such patch, or several.
llvm::Error takeFromBatch(llvm::StringRef directory, int64_t line, std::optional<int64_t> position,
                          llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_BATCH_BATCH_H
