// `ctxc man` and `ctxc completion`: what the tables of options say, for man and for shells.
#include "tools/CommandLine/Manual.h"
#include "Commands.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Suggestion.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::StringRef;

/// Writes a file of what `print` prints, in a folder that is made where it is not there.
static Error writePage(StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return makeError(folder + ": " + error.message());
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    print(os);
    return Error::success();
  });
}

static Error writeManualPages(StringRef directory) {
  std::vector<Command> commands = allCommands();
  for (const Command &command : commands)
    if (Error error = writePage((directory + "/ctxc-" + command.name + ".1").str(),
                                [&](auto &os) { printManPage(overview(), command, os); }))
      return error;
  return writePage((directory + "/ctxc.1").str(),
                   [&](auto &os) { printManPage(overview(), commands, os); });
}

static llvm::Expected<int> runMan(const Arguments &arguments) {
  if (auto directory = arguments.get("--pages")) {
    if (Error error = writeManualPages(*directory))
      return std::move(error);
    return ExitGood;
  }
  std::vector<Command> commands = allCommands();
  if (!arguments.count()) {
    printManPage(overview(), commands, out());
    return ExitGood;
  }
  std::vector<StringRef> names;
  for (const Command &command : commands) {
    if (command.name == arguments.positional(0)) {
      printManPage(overview(), command, out());
      return ExitGood;
    }
    names.push_back(command.name);
  }
  return makeError("man: there is no command '" + arguments.positional(0) + "'" +
                   suggestion(arguments.positional(0), names));
}

Command driver::manCommand() {
  OptionSpec pages =
      writesInto({"--pages", "DIR", "write all pages, as ctxc.1, ctxc-check.1, ... in DIR"});
  pages.insteadOfPositionals = true;
  return {"man",
          "print a manual page, for man and groff",
          {"[COMMAND]"},
          {pages},
          "Prints the page of COMMAND, or the page of ctxc. In an installation, `man ctxc` and\n"
          "`man ctxc-COMMAND` show them.",
          "  ctxc man verify | man -l -\n"
          "  ctxc man --pages ~/.local/share/man/man1\n",
          runMan};
}

static llvm::Expected<int> runCompletion(const Arguments &arguments) {
  StringRef shell = arguments.positional(0);
  std::vector<StringRef> shells = completedShells();
  if (!llvm::is_contained(shells, shell))
    return makeError("completion: found '" + shell + "', expected " + llvm::join(shells, ", ") +
                     suggestion(shell, shells));
  auto print = [&](llvm::raw_ostream &os) { printCompletion(shell, allCommands(), os); };
  if (auto path = arguments.get("-o")) {
    if (Error error = writePage(*path, print))
      return std::move(error);
  } else {
    print(out());
  }
  return ExitGood;
}

Command driver::completionCommand() {
  return {"completion",
          "print a script that makes a shell complete commands and options",
          {"SHELL"},
          {writes({"-o", "FILE", "write it to FILE"})},
          "SHELL is bash, zsh or fish. An installation below /usr has the scripts where the shells "
          "look\n"
          "for them; elsewhere, add one of the lines below to the shell's start file.",
          "  source <(ctxc completion bash)\n"
          "  source <(ctxc completion zsh)\n"
          "  ctxc completion fish | source\n",
          runCompletion};
}
