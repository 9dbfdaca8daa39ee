//===- OutputGuard.h - no command destroys what it does not own ------------===//
//
// What a command writes must not be what it reads, nor a file of somebody else. Which options name
// what, their declarations say (PathUse); the guard compares files by device and inode, so that
// links are seen through. It looks at all outputs before a command begins, and again at each file
// that is about to appear: so also at those whose names the command makes up itself.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_OUTPUTGUARD_H
#define CTXC_TOOLS_COMMANDLINE_OUTPUTGUARD_H

#include "ctxc/Support/AtomicFile.h"
#include "tools/CommandLine/CommandLine.h"
#include <string>
#include <vector>

namespace ctxc::driver {

class OutputGuard {
public:
  /// `plugins` are read as well.
  OutputGuard(const Command &command, const Arguments &arguments,
              llvm::ArrayRef<std::string> plugins);
  ~OutputGuard();
  OutputGuard(const OutputGuard &) = delete;

  /// Fails for every output that cannot be written, is an input, lies in a folder that is read, is
  /// named twice, or is there and not ctxc's own.
  llvm::Error checkOutputs() const;

  /// The same for one file, which may now appear; and where a mapped input was changed meanwhile.
  llvm::Error checkFile(llvm::StringRef path) const;

private:
  /// A path of the command line, and what names it there.
  struct Named {
    std::string name, path;
    PathUse use;
  };

  llvm::Error checkInputs(llvm::StringRef path) const;
  llvm::Error checkOwner(llvm::StringRef path) const;
  llvm::Error checkOutput(const Named &output) const;

  std::vector<Named> inputs, outputs;
  bool isForced;
  OutputCheck previous;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_OUTPUTGUARD_H
