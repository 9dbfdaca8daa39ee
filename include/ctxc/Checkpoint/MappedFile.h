//===- MappedFile.h - a read-only map of a file that may be cut short -----===//
//
// Weights are read in place. A file can become shorter while it is mapped (an
// interrupted download that restarts, a full disk's clean-up); reading the
// missing part raises SIGBUS. Or another program writes into it, so that the result belongs neither
// to the old nor to the new content. checkUnchanged finds both between steps;
// installMappedFileGuard turns the signal itself into a message.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_MAPPEDFILE_H
#define CTXC_CHECKPOINT_MAPPEDFILE_H

#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>

namespace ctxc {

/// What identifies a file's content without reading it.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modifiedNs = 0, changedNs = 0; ///< mtime and ctime
  uint64_t links = 0, mode = 0, owner = 0;
  bool operator==(const FileStamp &o) const {
    return device == o.device && inode == o.inode && size == o.size && modifiedNs == o.modifiedNs &&
           changedNs == o.changedNs;
  }
};

class MappedFile {
public:
  /// Maps `path`, a regular file that is not empty, or a symbolic link to one.
  /// Devices, FIFOs and directories are refused without being opened for long.
  static llvm::Expected<std::unique_ptr<MappedFile>> open(llvm::StringRef path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  llvm::StringRef path() const { return filePath; }
  llvm::ArrayRef<uint8_t> bytes() const { return {base, static_cast<size_t>(size)}; }

  /// Copies bytes [offset, offset + to.size()) by read(2), so that a file cut
  /// short gives an error instead of a signal. The range must lie inside bytes().
  llvm::Error read(uint64_t offset, llvm::MutableArrayRef<uint8_t> to) const;

  /// The file as it is on disk now.
  llvm::Expected<FileStamp> stamp() const;

  /// Fails when the file's size or content is no longer what was mapped. A file that was removed,
  /// or replaced by another of its name, still has its content.
  llvm::Error checkUnchanged() const;

private:
  MappedFile() = default;
  std::string filePath;
  FileStamp opened;
  int fd = -1, guardSlot = -1;
  const uint8_t *base = nullptr;
  uint64_t size = 0;
};

/// Makes SIGBUS inside a mapped file print `ctxc: error: PATH: file was cut
/// short while it was being read; …`, remove the temporary files of unfinished
/// outputs, and exit with code 2. Any other SIGBUS goes to the previous handler.
/// For main(); calling it again does nothing.
void installMappedFileGuard();

/// Fails with checkUnchanged's error for each file that is mapped, or was since
/// installMappedFileGuard was called.
llvm::Error checkMappedFiles();

} // namespace ctxc

#endif // CTXC_CHECKPOINT_MAPPEDFILE_H
