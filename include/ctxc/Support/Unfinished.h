//===- Unfinished.h - outputs that are removed if a program fails ----------===//
//
// An output is written under a temporary name beside its own, and renamed when it is complete.
// Until then it is unfinished: it is removed when its object is destroyed, and, in a program that
// calls removeUnfinishedOnSignals, when a signal ends the program.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_UNFINISHED_H
#define CTXC_SUPPORT_UNFINISHED_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <sys/types.h>

namespace ctxc {

/// A file or a directory of this process, under a name that nothing else has.
class Unfinished {
public:
  /// Makes an empty file whose name begins with `prefix`, and opens it for writing.
  static llvm::Expected<Unfinished> file(llvm::StringRef prefix, mode_t mode = 0666);
  /// Makes an empty directory whose name begins with `prefix`.
  static llvm::Expected<Unfinished> directory(llvm::StringRef prefix, mode_t mode = 0777);
  /// A private directory in the system's directory for temporary files.
  static llvm::Expected<Unfinished> temporaryDirectory();

  Unfinished(Unfinished &&other);
  Unfinished &operator=(Unfinished &&) = delete;
  /// Removes it, a directory with its content, unless it was kept.
  ~Unfinished();

  llvm::StringRef path() const { return name; }
  /// The file's descriptor; −1 for a directory.
  int descriptor() const { return fd; }

  /// Renames the file to `to`, and replaces what has this name.
  llvm::Error keepAs(llvm::StringRef to);
  /// Call this after it has been renamed: there is nothing to remove.
  void release();

private:
  Unfinished(std::string name, int slot, int fd) : name(std::move(name)), slot(slot), fd(fd) {}

  std::string name; ///< empty when it is released
  int slot = -1, fd = -1;
};

/// Removes all unfinished outputs of this process. It may be called in a signal handler; the
/// process must then end.
void removeUnfinished();

/// For main(): the signals that end a program (HUP, INT, QUIT, PIPE, ALRM, TERM, USR1, USR2, XCPU,
/// XFSZ), unless they are ignored, then remove unfinished outputs first. The program still ends by
/// the signal.
void removeUnfinishedOnSignals();

} // namespace ctxc

#endif // CTXC_SUPPORT_UNFINISHED_H
