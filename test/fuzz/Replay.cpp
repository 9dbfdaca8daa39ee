// Gives every file of the corpus to its reader: ctxc-replay CORPUS [READER FILE…]. Each folder of
// CORPUS has the name of a reader.
#include "Reader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace ctxc::fuzz;
using llvm::StringRef;

static void replay(const Reader &reader, StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  require(bool(buffer), "a file of the corpus can be read");
  llvm::outs() << reader.name << " " << path << "\n"; // the last line names what broke
  llvm::outs().flush();
  reader.read((*buffer)->getBuffer());
}

/// Returns how many files there were.
static size_t replayFolder(const Reader &reader, const std::string &folder) {
  size_t count = 0;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator at(folder, code), end; at != end && !code;
       at.increment(code), ++count)
    replay(reader, at->path());
  return count;
}

int main(int argc, char **argv) {
  if (argc > 2) {
    const Reader *reader = readerNamed(argv[2]);
    require(reader, "the second argument names a reader");
    for (int i = 3; i < argc; ++i)
      replay(*reader, argv[i]);
    return 0;
  }
  require(argc == 2, "the argument is the folder of the corpus");
  for (const Reader &reader : readers())
    if (!replayFolder(reader, std::string(argv[1]) + "/" + reader.name.str())) {
      llvm::errs() << reader.name << ": has no corpus\n";
      return 1;
    }
  return 0;
}
