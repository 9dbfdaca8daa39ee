//===- Archive.h - the entries of a .pt2 file -----------------------------===//
//
// torch.export.save writes a zip file whose entries are stored without compression, below one
// folder of any name. A file may be hostile: sizes are bounded by the file's own, and entries that
// are compressed, encrypted, named twice or larger together than the file are refused.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_ARCHIVE_H
#define CTXC_IMPORT_ARCHIVE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

struct zip;

namespace ctxc::pt2 {

class Archive {
public:
  /// Opens a file. Messages begin with its path.
  static llvm::Expected<Archive> open(llvm::StringRef path);
  /// The same of `bytes`, which must outlive it; messages begin with `name`.
  static llvm::Expected<Archive> ofBytes(llvm::StringRef bytes, llvm::StringRef name);

  bool has(llvm::StringRef entry) const { return sizes.contains(root + entry.str()); }
  /// The content of an entry, named as below the folder ("models/model.json"), whose checksum
  /// agrees; of at most `most` bytes, since an entry may be as large as the file.
  llvm::Expected<std::string> read(llvm::StringRef entry, uint64_t most = largestEntry) const;
  /// The graph of a model of a hundred layers has 30 MiB.
  static constexpr uint64_t largestEntry = 512 << 20;

  llvm::StringRef name() const { return path; }
  /// The names, sizes and checksums of all entries: the same for copies of a file.
  std::string identity() const;

private:
  struct Discard {
    void operator()(::zip *archive) const;
  };
  llvm::Error list(uint64_t fileSize);

  std::string path;
  std::string root; ///< the folder, with a slash
  std::unique_ptr<::zip, Discard> archive;
  llvm::StringMap<uint64_t> sizes; ///< by whole names
  std::string entries;             ///< what identity() says
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_ARCHIVE_H
