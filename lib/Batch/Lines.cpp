#include "Lines.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/SHA256.h"
#include <cstring>
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::batch;
using llvm::Expected;

static constexpr size_t bufferBytes = 1 << 20;

Expected<LineFile> LineFile::open(llvm::StringRef path) {
  struct stat status;
  Expected<int> descriptor = openRegularFile(path, status);
  if (!descriptor)
    return descriptor.takeError();
  return LineFile(path, *descriptor);
}

LineFile::LineFile(LineFile &&other)
    : path(std::move(other.path)), descriptor(std::exchange(other.descriptor, -1)),
      buffer(std::move(other.buffer)), begin(other.begin), end(other.end), number(other.number) {}

LineFile::~LineFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

/// Reads more where all that was read is used up; false at the end of the file.
Expected<bool> LineFile::fill() {
  if (begin < end)
    return true;
  buffer.resize(bufferBytes);
  ssize_t count = llvm::sys::RetryAfterSignal(-1, ::read, descriptor, buffer.data(), bufferBytes);
  if (count < 0)
    return makeError(path + ": cannot be read: " + llvm::sys::StrError());
  begin = 0;
  end = count;
  return count > 0;
}

Expected<bool> LineFile::next(Line &line) {
  line = {number + 1, "", false};
  for (bool isBegun = false;; isBegun = true) {
    Expected<bool> more = fill();
    if (!more)
      return more.takeError();
    if (!*more) {
      number += isBegun;
      return isBegun;
    }
    const char *from = buffer.data() + begin;
    const void *newline = std::memchr(from, '\n', end - begin);
    size_t count = newline ? static_cast<const char *>(newline) - from : end - begin;
    begin += count + (newline != nullptr);
    if (!line.isTooLong && line.text.size() + count <= longest) {
      line.text.append(from, count);
    } else {
      line.isTooLong = true;
      line.text.clear();
    }
    if (!newline)
      continue;
    ++number;
    return true;
  }
}

Expected<FileFacts> batch::factsOf(llvm::StringRef path) {
  struct stat status;
  Expected<int> descriptor = openRegularFile(path, status);
  if (!descriptor)
    return descriptor.takeError();
  FileFacts facts;
  llvm::SHA256 digest;
  std::vector<uint8_t> buffer(bufferBytes);
  bool isOpenLine = false;
  ssize_t count;
  while ((count = llvm::sys::RetryAfterSignal(-1, ::read, *descriptor, buffer.data(),
                                              buffer.size())) > 0) {
    llvm::ArrayRef<uint8_t> bytes(buffer.data(), count);
    digest.update(bytes);
    facts.lines += llvm::count(bytes, '\n');
    isOpenLine = bytes.back() != '\n';
  }
  std::string problem = llvm::sys::StrError();
  ::close(*descriptor);
  if (count < 0)
    return makeError(path + ": cannot be read: " + problem);
  facts.lines += isOpenLine;
  facts.digest = llvm::toHex(digest.final(), /*LowerCase=*/true);
  return facts;
}
