#include "LinkLibrary.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ctxc;
using llvm::Error;
using llvm::StringRef;

/// The library of functions that kernels call, in the installed or the built ctxc.
static std::string numericsArchive() {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<256> archive(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(archive, "..", CTXC_NUMERICS_ARCHIVE);
  return std::string(archive);
}

/// Links `object` into `library`, whose soname is `name`.
static Error link(StringRef object, StringRef library, StringRef name) {
  std::string soname = ("-Wl,-soname," + llvm::sys::path::filename(name)).str();
  for (const char *program : {"c++", "clang++", "clang++-22", "g++"}) {
    llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName(program);
    if (!linker)
      continue;
    std::string message;
    int code = llvm::sys::ExecuteAndWait(
        *linker,
        {*linker, "-shared", "-o", library, object, numericsArchive(),
         "-Wl,-z,defs,-z,relro,-z,now", "-Wl,--exclude-libs,ALL", "-Wl,--as-needed", "-lm", soname},
        std::nullopt, {}, 0, 0, &message);
    if (code == 0)
      return Error::success();
    return makeError(library + ": " + *linker + " could not link it" +
                     (message.empty() ? "" : ": " + message));
  }
  return makeError(library + ": linking needs c++, clang++ or g++, and none is in PATH; --emit=obj "
                             "needs none");
}

Error driver::linkLibrary(StringRef object, StringRef path) {
  // The library is linked under another name and then renamed, so that no incomplete file is left.
  std::string input = (path + ".tmp.o").str(), library = (path + ".tmp.so").str();
  llvm::scope_exit cleanUp([&] {
    llvm::sys::fs::remove(input);
    llvm::sys::fs::remove(library);
  });
  Error written = writeFileAtomically(input, [&](llvm::raw_pwrite_stream &os) {
    os << object;
    return Error::success();
  });
  if (written)
    return written;
  if (Error error = link(input, library, path))
    return error;
  if (std::error_code error = llvm::sys::fs::rename(library, path))
    return makeError(path + ": cannot be written: " + error.message());
  return Error::success();
}
