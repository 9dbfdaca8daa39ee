#include "DrawRecords.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/Installed.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace ctxc;
using llvm::Error;
using llvm::StringRef;

static std::string plotScript() {
  llvm::SmallString<256> script(driver::installation());
  llvm::sys::path::append(script, "share", "ctxc", "plot_experiment.py");
  return std::string(script);
}

Error driver::drawRecords(StringRef directory, StringRef given, bool force) {
  const char *known = std::getenv("CTXC_PYTHON");
  std::string python = given.empty() && known ? known : given.str();
  std::string script = plotScript();
  if (python.empty()) {
    out() << "plots and page: PYTHON " << script << " " << printableLine(directory)
          << ", with a Python that has matplotlib; or name it with --python or "
             "CTXC_PYTHON\n";
    return Error::success();
  }
  auto program = llvm::sys::findProgramByName(python);
  if (!program)
    return makeError("--python: " + python + ": " + program.getError().message());
  if (!llvm::sys::fs::can_execute(*program)) // a path is taken as it is
    return makeError("--python: " + python + ": is no program that can be run");
  flushOutput();
  std::string message;
  llvm::SmallVector<StringRef> words = {python, script, directory};
  if (force)
    words.push_back("--force");
  int code = llvm::sys::ExecuteAndWait(*program, words, std::nullopt, {}, 0, 0, &message);
  if (code < 0)
    return makeError("--python: " + python + ": " + message);
  if (code)
    return makeError("--python: " + python + " " + script + " " + directory + ": exit code " +
                     llvm::Twine(code));
  return Error::success();
}
