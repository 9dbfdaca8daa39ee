#include "lib/Lowering/GPU/AMD/LinkCodeObject.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Unfinished.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace ctxc;
using llvm::StringRef;

static llvm::Error writeFile(StringRef path, StringRef content) {
  std::error_code opened;
  llvm::raw_fd_ostream os(path, opened);
  if (opened)
    return llvm::errorCodeToError(opened);
  os << content;
  os.close();
  if (!os.has_error())
    return llvm::Error::success();
  std::error_code error = os.error();
  os.clear_error();
  return llvm::errorCodeToError(error);
}

/// lld reads and writes only files. Its state is global, so that only one thread may run it at a
/// time.
llvm::Expected<std::string> gpu_lowering::linkCodeObject(StringRef object, StringRef target) {
  static std::mutex one;
  static bool canRunAgain = true;
  std::lock_guard<std::mutex> guard(one);
  llvm::Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return makeError(target + ": " + llvm::toString(folder.takeError()));
  std::string in = (folder->path() + "/in.o").str(), out = (folder->path() + "/out.hsaco").str();
  if (llvm::Error error = writeFile(in, object))
    return makeError(target + ": " + in + ": " + llvm::toString(std::move(error)));

  std::string messages;
  llvm::raw_string_ostream os(messages);
  const char *arguments[] = {"ld.lld",   "-shared", "--no-undefined", "--threads=1",
                             in.c_str(), "-o",      out.c_str()};
  lld::Result result = {1, false};
  if (canRunAgain)
    result = lld::lldMain(arguments, os, os, {{lld::Gnu, &lld::elf::link}});
  canRunAgain = result.canRunAgain;
  if (result.retCode)
    return makeError(target + ": lld could not link the kernels: " + StringRef(messages).trim());
  auto linked =
      llvm::MemoryBuffer::getFile(out, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return makeError(target + ": " + out + ": " + linked.getError().message());
  return (*linked)->getBuffer().str();
}
