#include "Exported.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/Installed.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<OptionSpec> driver::exportOptions() {
  OptionSpec type{
      "--transformers", "TYPE",
      "in place of MODEL: a small model of this model type of transformers, exported by\n"
      "a Python with torch, transformers and ctxc"};
  type.insteadOfPositionals = true;
  return {type,
          {"--watch", "",
           "check what FILE.py:FUNCTION builds again after each save of its files, until\n"
           "Ctrl-C"},
          reads({"--python", "PYTHON",
                 "the Python that exports (default: CTXC_PYTHON, or python3 if it is not set)"})};
}

/// Whether a model is given as "mine.py:build".
static bool isFunction(StringRef model) {
  auto [file, function] = model.rsplit(':');
  return file.ends_with(".py") && !function.empty() && !llvm::sys::fs::exists(model);
}

bool driver::isExported(const Arguments &arguments) {
  return arguments.has("--transformers") || arguments.has("--watch") ||
         isFunction(arguments.positional(0));
}

static Expected<std::string> findPython(const Arguments &arguments) {
  const char *known = std::getenv("CTXC_PYTHON");
  std::string python = arguments.get("--python", known && *known ? known : "python3").str();
  auto program = llvm::sys::findProgramByName(python);
  if (!program || !llvm::sys::fs::can_execute(*program))
    return makeError(python +
                     ": is no program that can be run; name a Python with torch and ctxc with "
                     "--python or CTXC_PYTHON");
  // Behind what the caller has there: ctxc's own modules, in a build folder.
  std::string package = installation() + "/python", before;
  if (const char *path = std::getenv("PYTHONPATH"))
    before = *path ? std::string(path) + ":" : "";
  if (llvm::sys::fs::exists(package + "/ctxc/export.py"))
    setenv("PYTHONPATH", (before + package).c_str(), /*overwrite=*/1);
  return *program;
}

/// What ctxc.export said, a line as the error and the others as its notes; else the last line that
/// the Python wrote.
static Error failure(StringRef what, StringRef python, StringRef file) {
  auto text = llvm::MemoryBuffer::getFile(file);
  StringRef said = text ? (*text)->getBuffer().rtrim() : StringRef();
  constexpr StringRef mark = "ctxc.export: ";
  size_t at = said.rfind(("\n" + mark).str());
  StringRef own = at == StringRef::npos ? said : said.substr(at + 1);
  if (!own.consume_front(mark))
    return makeError(what + ": " + python +
                     " -m ctxc.export failed: " + printableLine(said.substr(said.rfind('\n') + 1)) +
                     "; expected a Python with torch, transformers and ctxc (--python, "
                     "CTXC_PYTHON, PYTHONPATH)");
  std::string message;
  for (StringRef line : llvm::split(own, '\n'))
    message += (message.empty() ? "" : "\nnote: ") + printableLine(line.trim());
  return makeError(message);
}

Exported::Exported(Unfinished folder) : folder(std::move(folder)) {
  file = (this->folder.path() + "/model.ctxc").str();
}

/// The source and the options of ctxc.export.
static Expected<llvm::SmallVector<StringRef>> sourceOf(const Arguments &arguments) {
  auto type = arguments.get("--transformers");
  if (!type)
    return llvm::SmallVector<StringRef>{arguments.positional(0)};
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; };
  if (type->empty() || !llvm::all_of(*type, isOfName) || type->front() == '-')
    return makeError("--transformers: found " + quoted(*type) +
                     ", expected a model type such as llama or qwen3");
  return llvm::SmallVector<StringRef>{*type, "--small"};
}

Expected<Exported> Exported::make(const Arguments &arguments) {
  auto source = sourceOf(arguments);
  if (!source)
    return source.takeError();
  auto python = findPython(arguments);
  if (!python)
    return python.takeError();
  Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return folder.takeError();
  Exported made(std::move(*folder));
  std::string said = (made.folder.path() + "/said").str(), message;
  llvm::SmallVector<StringRef> words{*python, "-m", "ctxc.export"};
  words.append(*source);
  words.append({"-o", made.file});
  flushOutput();
  int code =
      llvm::sys::ExecuteAndWait(*python, words, std::nullopt,
                                {StringRef(""), StringRef(""), StringRef(said)}, 0, 0, &message);
  if (code == 0)
    return made;
  if (code < 0)
    return makeError(*python + ": " + message);
  return failure(source->front(), *python, said);
}

Error driver::watchFunction(const Arguments &arguments,
                            llvm::function_ref<Error(StringRef path)> check) {
  if (!isFunction(arguments.positional(0)))
    return makeError("--watch: found " + quoted(arguments.positional(0)) +
                     ", expected a function, as in mine.py:build");
  auto python = findPython(arguments);
  if (!python)
    return python.takeError();
  Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return folder.takeError();
  // The Python writes a line for each save into this pipe, which is open before it starts.
  std::string pipe = (folder->path() + "/said").str(), message;
  std::string file = (folder->path() + "/model.ctxc").str();
  if (mkfifo(pipe.c_str(), 0600))
    return makeError(pipe + ": " + llvm::sys::StrError());
  int descriptor = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(pipe), std::nullopt};
  llvm::sys::ProcessInfo child = llvm::sys::ExecuteNoWait(
      *python, {*python, "-m", "ctxc.export", arguments.positional(0), "--watch", "-o", file},
      std::nullopt, redirects, 0, &message);
  if (!child.Pid)
    return makeError(*python + ": " + message);
  fcntl(descriptor, F_SETFL, 0);
  std::unique_ptr<FILE, int (*)(FILE *)> lines(fdopen(descriptor, "r"), fclose);
  llvm::SmallVector<char, 4096> line(4096);
  while (fgets(line.data(), line.size(), lines.get())) {
    StringRef written = StringRef(line.data()).rtrim();
    if (!written.empty())
      if (Error error = check(written)) {
        kill(child.Pid, SIGTERM);
        llvm::sys::Wait(child, std::nullopt);
        return error;
      }
    flushOutput();
  }
  llvm::sys::Wait(child, std::nullopt);
  return makeError(arguments.positional(0) + ": " + *python +
                   " ended; its messages say why: expected a Python with torch and ctxc");
}
