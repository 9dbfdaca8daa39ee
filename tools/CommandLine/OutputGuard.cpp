#include "tools/CommandLine/OutputGuard.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/OwnFile.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

OutputGuard::OutputGuard(const Command &command, const Arguments &arguments,
                         llvm::ArrayRef<std::string> plugins)
    : isForced(arguments.has("--force")) {
  for (size_t i = 0; i < std::min(arguments.count(), command.positionals.size()); ++i)
    if (isPathWord(command.positionals[i]))
      inputs.push_back(
          {command.positionals[i].str(), arguments.positional(i).str(), PathUse::Input});
  for (const OptionSpec &option : command.options)
    for (StringRef value : arguments.all(option.name)) {
      bool isFile = value.consume_front("@") || option.path == PathUse::Input;
      bool isScreen = option.path == PathUse::Output && value == "-";
      if (isFile)
        inputs.push_back({option.name.str(), value.str(), PathUse::Input});
      else if (option.path != PathUse::None && !isScreen &&
               !(value.empty() && option.valueOptional))
        outputs.push_back({option.name.str(), value.str(), option.path});
    }
  for (const std::string &plugin : plugins)
    inputs.push_back({"--load-dialect-plugin", plugin, PathUse::Input});
  previous = setOutputCheck([this](StringRef path) { return checkFile(path); });
}

OutputGuard::~OutputGuard() { setOutputCheck(std::move(previous)); }

//===----------------------------------------------------------------------===//
// What is the same file
//===----------------------------------------------------------------------===//

static bool isSame(StringRef a, StringRef b) {
  bool same = false;
  return !fs::equivalent(a, b, same) && same;
}

/// The real path of a file that need not exist.
static std::string realPath(StringRef path) {
  llvm::SmallString<256> real;
  if (!fs::real_path(path, real))
    return real.str().str();
  StringRef parent = llvm::sys::path::parent_path(path);
  if (fs::real_path(parent.empty() ? "." : parent, real))
    return path.str();
  llvm::sys::path::append(real, llvm::sys::path::filename(path));
  return real.str().str();
}

/// Whether `path` is below `folder`, or one of its entries is the same file, as a link of a hub's
/// snapshot is.
static bool isIn(StringRef path, StringRef folder) {
  if (StringRef(realPath(path)).starts_with(realPath(folder) + "/"))
    return true;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (isSame(path, i->path()))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

Error OutputGuard::checkInputs(StringRef path) const {
  if (!fs::exists(path))
    return Error::success();
  for (const Named &input : inputs) {
    if (isSame(path, input.path))
      return makeError(path + ": is what " + input.name +
                       " names, which is read; name another place to write to");
    if (fs::is_directory(input.path) && !fs::is_directory(path) && isIn(path, input.path) &&
        !isOwnFile(path))
      return makeError(path + ": is a file of " + input.path + ", which " + input.name +
                       " names to be read; name another place to write to");
  }
  return Error::success();
}

Error OutputGuard::checkOwner(StringRef path) const {
  fs::file_status status;
  if (isForced || fs::status(path, status) || !fs::is_regular_file(status) || !status.getSize() ||
      isOwnFile(path))
    return Error::success();
  return makeError(path + ": is there, and is not known to be written by ctxc; name another file, "
                          "or replace it with --force");
}

Error OutputGuard::checkFile(StringRef path) const {
  if (isWrittenInto(path)) {
    flushOutput(); // may be the same place
  } else {
    if (Error error = checkInputs(path))
      return error;
    if (Error error = checkOwner(path))
      return error;
  }
  return checkMappedFiles();
}

Error OutputGuard::checkOutput(const Named &output) const {
  if (isWrittenInto(output.path))
    return Error::success();
  if (Error error = checkInputs(output.path))
    return error;
  if (output.use == PathUse::Output)
    if (Error error = checkWritable(output.path))
      return error;
  return checkOwner(output.path);
}

Error OutputGuard::checkOutputs() const {
  Error errors = Error::success();
  auto fail = [&](const Named &output, const llvm::Twine &message) {
    errors = llvm::joinErrors(std::move(errors), makeError(output.name + ": " + message));
  };
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (Error error = checkOutput(output))
      fail(output, llvm::toString(std::move(error)));
    for (const Named &other : llvm::ArrayRef(outputs).take_front(i))
      if (!isWrittenInto(output.path) &&
          (isSame(output.path, other.path) || realPath(output.path) == realPath(other.path)))
        fail(output, output.path + ": " + other.name + " names the same file; name another");
  }
  return errors;
}
