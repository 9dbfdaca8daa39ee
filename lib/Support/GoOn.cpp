#include "ctxc/Support/GoOn.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;
using llvm::json::Value;

static std::string compact(const Value &value) { return llvm::formatv("{0}", value).str(); }

/// `text`, cut to a length for messages.
static std::string brief(const Value &value) {
  std::string text = compact(value);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

Error ctxc::compareSettings(StringRef file, const Object &found, const Object &wanted) {
  Error errors = Error::success();
  auto fail = [&](StringRef name, const Value &before, const Value &now) {
    errors = llvm::joinErrors(std::move(errors),
                              makeError(file + ": " + name + " is " + brief(before) +
                                        " there, and " + brief(now) + " was asked for"));
  };
  std::vector<StringRef> names;
  for (const Object *object : {&found, &wanted})
    for (auto &[name, value] : *object)
      names.push_back(name);
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  const Value none(nullptr);
  for (StringRef name : names) {
    const Value *before = found.get(name), *now = wanted.get(name);
    if (!before || !now || compact(*before) != compact(*now))
      fail(name, before ? *before : none, now ? *now : none);
  }
  if (errors)
    errors = llvm::joinErrors(std::move(errors),
                              makeError(file + ": belongs to a run with other settings; name "
                                               "another directory with -o, or the same settings "
                                               "to go on with it"));
  return errors;
}

/// The process that holds the lock of the open file, as /proc/locks tells.
static std::string holderOf(int descriptor) {
  struct stat status;
  std::ifstream locks("/proc/locks");
  std::string line;
  while (::fstat(descriptor, &status) == 0 && std::getline(locks, line)) {
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    llvm::SmallVector<StringRef> words;
    llvm::SplitString(line, words);
    if (words.size() > 5 && words[1] == "FLOCK" &&
        words[5].ends_with((":" + llvm::Twine(status.st_ino)).str()))
      return ("process " + words[4]).str();
  }
  return "another process";
}

Expected<int> ctxc::openLocked(StringRef file) {
  if (llvm::sys::fs::exists(file))
    if (Error error = checkRegularFile(file))
      return std::move(error);
  int descriptor = -1;
  if (std::error_code code = llvm::sys::fs::openFileForReadWrite(
          file, descriptor, llvm::sys::fs::CD_OpenAlways, llvm::sys::fs::OF_Append))
    return makeError(file + ": " + code.message());
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor;
  std::error_code code = llvm::errnoAsErrorCode();
  std::string holder = holderOf(descriptor);
  ::close(descriptor);
  if (code != std::errc::operation_would_block)
    return makeError(file + ": cannot be locked: " + code.message());
  return makeError(file + ": " + holder +
                   " is writing to it; wait for it, or name another directory with -o");
}
