//===- Unfinished.h - what is removed where a program does not end well ----===//
//
// An output is made under another name beside its own, and renamed when it is complete. Until then
// it is unfinished: it is removed with its object, and, in a program that asks for that, where a
// signal ends the program.
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
  /// A directory for one's own use, where the system has temporary files.
  static llvm::Expected<Unfinished> temporaryDirectory();

  Unfinished(Unfinished &&other);
  Unfinished &operator=(Unfinished &&) = delete;
  /// Removes it, a directory with all that is in it, unless it was kept.
  ~Unfinished();

  llvm::StringRef path() const { return name; }
  /// A file's; −1 for a directory.
  int descriptor() const { return fd; }

  /// Gives a file the name `to`, in place of what had it.
  llvm::Error keepAs(llvm::StringRef to);
  /// It has been renamed: there is nothing to remove.
  void release();

private:
  Unfinished(std::string name, int slot, int fd) : name(std::move(name)), slot(slot), fd(fd) {}

  std::string name; ///< empty when it is released
  int slot = -1, fd = -1;
};

/// Removes all that is unfinished in this process. It may be called in a signal handler; the
/// process must end then.
void removeUnfinished();

/// For main(): the signals that end a program (HUP, INT, QUIT, PIPE, ALRM, TERM, USR1, USR2, XCPU,
/// XFSZ), unless they are ignored, remove what is unfinished first. The program then ends by the
/// signal, as without.
void removeUnfinishedOnSignals();

} // namespace ctxc

#endif // CTXC_SUPPORT_UNFINISHED_H
