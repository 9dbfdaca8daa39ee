// MLIR's language server with ctxc's dialects and those of plugins, and verdicts beside what it
// says. An editor starts it, and shows both while a block is typed (docs/editors.md).
#include "Beside.h"
#include "ctxc/Plugins/DialectPlugins.h"
#include "ctxc/Support/StandardStreams.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tools/CommandLine/Programs.h"
#include "llvm/Support/Errno.h"
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static llvm::Error loadPlugins(std::vector<llvm::StringRef> &words,
                               mlir::DialectRegistry &registry) {
  auto files = ctxc::takePluginOptions("--load-dialect-plugin", words);
  if (!files)
    return files.takeError();
  for (llvm::StringRef file : *files)
    if (llvm::Error error = ctxc::loadDialectPlugin(file, registry))
      return error;
  return llvm::Error::success();
}

/// Runs MLIR's server in a child process, which reads and writes the two pipes; in this one it
/// returns the child's id, or −1 where there is none.
static pid_t startServer(int input[2], int output[2], llvm::function_ref<int()> serve) {
  if (pipe(input) || pipe(output))
    return -1;
  pid_t child = fork();
  if (child)
    return child;
  dup2(input[0], STDIN_FILENO);
  dup2(output[1], STDOUT_FILENO);
  for (int each : {input[0], input[1], output[0], output[1]})
    close(each);
  _exit(serve());
}

/// Hands on messages between the editor and a server in a child process, until both have ended.
static int serveBeside(const mlir::DialectRegistry &plugins, llvm::function_ref<int()> serve) {
  int input[2], output[2], status = 0;
  pid_t child = startServer(input, output, serve); // before there are threads
  if (child < 0) {
    llvm::errs() << "ctxc-lsp-server: error: " << llvm::sys::StrError() << "\n";
    return 1;
  }
  signal(SIGPIPE, SIG_IGN);
  close(input[0]);
  close(output[1]);
  ctxc::lsp::Sender toEditor(STDOUT_FILENO), toServer(input[1]);
  ctxc::lsp::Beside beside(toEditor, toServer, plugins);
  std::thread judges([&] { beside.judgeDocuments(); });
  std::thread editor([&] {
    while (auto message = ctxc::lsp::readMessage(stdin))
      beside.fromEditor(std::move(*message));
    toServer.end();
  });
  FILE *server = fdopen(output[0], "r");
  while (auto message = ctxc::lsp::readMessage(server))
    beside.fromServer(std::move(*message));
  waitpid(child, &status, 0);
  beside.end();
  judges.join();
  editor.detach(); // it may wait for an editor that says nothing
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int ctxc::runCtxcLspServer(int argc, char **argv) {
  ctxc::openStandardStreams();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<ctxc::xf::XFDialect, ctxc::patch::PatchDialect, ctxc::kernel::KernelDialect>();
  std::vector<llvm::StringRef> words(argv, argv + argc);
  if (llvm::Error error = loadPlugins(words, registry)) {
    llvm::errs() << "ctxc-lsp-server: error: " << llvm::toString(std::move(error)) << "\n";
    return 2;
  }
  std::vector<char *> others; // each is a whole argument of argv
  for (llvm::StringRef word : words)
    others.push_back(const_cast<char *>(word.data()));
  others.push_back(nullptr);
  auto serve = [&] {
    return int(failed(mlir::MlirLspServerMain(words.size(), others.data(), registry)));
  };
  auto isNoSession = [](llvm::StringRef word) { // a question, or MLIR's own tests' framing
    return word.starts_with("--help") || word == "--version" || word == "--lit-test" ||
           word.starts_with("--input-style");
  };
  if (llvm::any_of(words, isNoSession))
    return serve();
  return serveBeside(registry, serve);
}
