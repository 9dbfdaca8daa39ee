// Values of options: lists of tokens and positions, and output files.
#include "tools/CommandLine/Values.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

/// Larger than the tokens of any context: a wrong file is reported instead of being read to its
/// end.
static constexpr uint64_t tokenFileLimit = 64 << 20;

static llvm::Error parseOne(StringRef word, bool ranges, StringRef what,
                            std::vector<int64_t> &values) {
  int64_t first, last;
  size_t dash = ranges ? word.find('-', 1) : StringRef::npos;
  if (!word.take_front(dash).getAsInteger(10, first)) {
    last = first;
    if (dash == StringRef::npos || !word.drop_front(dash + 1).getAsInteger(10, last)) {
      if (last < first || last - first > (1 << 24))
        return makeError(what + ": range '" + word + "' is empty or too long");
      for (int64_t value = first; value <= last; ++value)
        values.push_back(value);
      return llvm::Error::success();
    }
  }
  return makeError(what + ": found '" + word + "', expected integers separated by commas or " +
                   "spaces" + (ranges ? ", or ranges such as 0-3" : ""));
}

/// Words between commas or spaces. Two commas have a word between them: a list with a gap was cut.
static llvm::Expected<std::vector<int64_t>> parseList(StringRef text, bool ranges, StringRef what) {
  std::vector<int64_t> values;
  llvm::SmallVector<StringRef> groups, words;
  text.split(groups, ',');
  for (StringRef group : groups) {
    words.clear();
    llvm::SplitString(group, words, " \t\r\n");
    if (words.empty() && groups.size() > 1)
      return makeError(what + ": found nothing before or behind a comma, expected an integer");
    for (StringRef word : words)
      if (llvm::Error error = parseOne(word, ranges, what, values))
        return std::move(error);
  }
  return values;
}

llvm::Expected<std::vector<int64_t>> driver::parseIntegers(StringRef text, StringRef what) {
  if (!text.consume_front("@"))
    return parseList(text, false, what);
  llvm::Expected<std::string> content = readSmallFile(text, tokenFileLimit);
  if (!content)
    return content.takeError();
  return parseList(*content, false, (what + ": " + text).str());
}

llvm::Expected<std::vector<int64_t>> driver::parsePositions(StringRef text, StringRef what) {
  return parseList(text, true, what);
}

llvm::Expected<std::string> driver::readStandardInput(uint64_t limit) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return makeError("standard input: cannot read: " + llvm::sys::StrError(errno));
    if (count == 0)
      return text;
    text.append(buffer, size_t(count));
    if (text.size() > limit)
      return makeError("standard input: found more than " + llvm::Twine(limit) +
                       " bytes, expected at most that many");
  }
}

llvm::Error driver::checkWritable(StringRef path) {
  namespace fs = llvm::sys::fs;
  if (path.empty())
    return makeError("expected a path, found an empty one");
  if (fs::is_directory(path))
    return makeError(path + " is a directory; expected a file to write");
  StringRef parent = llvm::sys::path::parent_path(path);
  if (parent.empty())
    parent = ".";
  if (!fs::is_directory(parent))
    return makeError(path + " cannot be written: there is no directory " + parent);
  if (std::error_code error = fs::access(parent, fs::AccessMode::Write))
    return makeError(path + " cannot be written: " + error.message());
  return llvm::Error::success();
}
