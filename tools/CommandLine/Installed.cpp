#include "tools/CommandLine/Installed.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using llvm::StringRef;

static std::string chosen;

void driver::setInstallation(StringRef folder) { chosen = folder.str(); }

std::string driver::installation() {
  if (!chosen.empty())
    return chosen;
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  return llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)).str();
}
