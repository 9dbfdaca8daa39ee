#include "LinkLibrary.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Support/Unfinished.h"
#include "tools/CommandLine/Installed.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ctxc;
using llvm::Error;
using llvm::StringRef;

/// The library of functions that kernels call, in the installed or the built ctxc.
static std::string numericsArchive() {
  llvm::SmallString<256> archive(driver::installation());
  llvm::sys::path::append(archive, CTXC_NUMERICS_ARCHIVE);
  return std::string(archive);
}

/// Links the file `object` into `library`, whose soname is `name`.
static Error link(StringRef object, StringRef library, StringRef name) {
  std::string soname = ("-Wl,-soname," + name).str();
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
    return makeError(*linker + " could not link it" + (message.empty() ? "" : ": " + message));
  }
  return makeError("linking needs c++, clang++ or g++, and none is in PATH; --emit=obj needs none");
}

llvm::Expected<std::string> driver::linkLibrary(StringRef object, StringRef name) {
  llvm::Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return folder.takeError();
  std::string in = (folder->path() + "/kernels.o").str(),
              out = (folder->path() + "/kernels.so").str();
  Error written = writeFileAtomically(in, [&](llvm::raw_pwrite_stream &os) {
    os << object;
    return Error::success();
  });
  if (written)
    return std::move(written);
  if (Error error = link(in, out, name))
    return std::move(error);
  return readSmallFile(out, uint64_t(1) << 40);
}
