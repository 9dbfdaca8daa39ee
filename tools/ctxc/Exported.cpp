#include "ExportedType.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

std::vector<OptionSpec> driver::exportedTypeOptions() {
  OptionSpec type{
      "--transformers", "TYPE",
      "in place of MODEL: a small model of this model type of transformers, exported by\n"
      "a Python with torch, transformers and ctxc"};
  type.insteadOfPositionals = true;
  return {type, reads({"--python", "PYTHON",
                       "that Python (default: CTXC_PYTHON, or python3 if it is not set)"})};
}

/// The last line that a program wrote.
static std::string lastLineOf(StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return "";
  StringRef said = (*text)->getBuffer().rtrim();
  return printableLine(said.substr(said.rfind('\n') + 1));
}

ExportedType::ExportedType(std::string folder, StringRef type)
    : folder(folder), file(folder + "/" + type.str() + ".pt2") {}

ExportedType::~ExportedType() {
  if (!folder.empty())
    (void)llvm::sys::fs::remove_directories(folder);
}

llvm::Expected<ExportedType> ExportedType::make(const Arguments &arguments) {
  StringRef type = *arguments.get("--transformers");
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; };
  if (type.empty() || !llvm::all_of(type, isOfName) || type.front() == '-')
    return makeError("--transformers: found " + quoted(type) +
                     ", expected a model type such as llama or qwen3");
  const char *known = std::getenv("CTXC_PYTHON");
  std::string python = arguments.get("--python", known && *known ? known : "python3").str();
  auto program = llvm::sys::findProgramByName(python);
  if (!program || !llvm::sys::fs::can_execute(*program))
    return makeError("--transformers: " + python +
                     ": is no program that can be run; name a Python with torch, transformers and "
                     "ctxc with --python or CTXC_PYTHON");
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("ctxc", folder))
    return makeError("--transformers: no folder for the exported model: " + error.message());
  ExportedType made(folder.str().str(), type);
  std::string said = (folder + "/said").str();
  flushOutput();
  std::string message;
  int code = llvm::sys::ExecuteAndWait(
      *program, {python, "-m", "ctxc.export", type, "--small", "-o", made.file}, std::nullopt,
      {StringRef(""), StringRef(""), StringRef(said)}, 0, 0, &message);
  if (code == 0)
    return made;
  std::string line = code < 0 ? message : lastLineOf(said);
  return makeError("--transformers " + type + ": " + python + " -m ctxc.export failed: " + line +
                   "; expected a Python with torch, transformers and ctxc (--python, CTXC_PYTHON, "
                   "PYTHONPATH)");
}
