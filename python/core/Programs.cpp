// The command-line programs, run in Python's process: the package needs no executable of its own.
#include "tools/CommandLine/Programs.h"
#include "Core.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Installed.h"
#include <csignal>

namespace nb = nanobind;
using namespace ctxc;

/// The exit code of the program `words[0]`, whose files lie below `folder`.
static int runProgram(std::vector<std::string> words, const std::string &folder) {
  int (*program)(int, char **) = words[0] == "ctxc"              ? &runCtxc
                                 : words[0] == "ctxc-opt"        ? &runCtxcOpt
                                 : words[0] == "ctxc-lsp-server" ? &runCtxcLspServer
                                                                 : nullptr;
  if (!program)
    python::raiseError(
        makeError("found program '" + words[0] + "', expected ctxc, ctxc-opt or ctxc-lsp-server"));
  driver::setInstallation(folder);
  // As a shell starts a program. Python has handlers, of which nobody would run the second half.
  for (int each : {SIGINT, SIGPIPE, SIGXFSZ})
    std::signal(each, SIG_DFL);
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  nb::gil_scoped_release release;
  return program(int(words.size()), argv.data());
}

void python::addPrograms(nb::module_ &m) { m.def("run_program", &runProgram); }
