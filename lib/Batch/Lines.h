//===- Lines.h - a file of lines, of any size -------------------------------===//
#ifndef CTXC_LIB_BATCH_LINES_H
#define CTXC_LIB_BATCH_LINES_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ctxc::batch {

struct Line {
  int64_t number = 0; ///< from 1 on
  std::string text;
  bool isTooLong = false; ///< then `text` is empty
};

/// What is known of a file after it was read once.
struct FileFacts {
  int64_t lines = 0;
  std::string digest; ///< SHA-256, in hexadecimal digits
};
llvm::Expected<FileFacts> factsOf(llvm::StringRef path);

/// Reads lines one after the other; memory holds one.
class LineFile {
public:
  static constexpr size_t longest = 64 << 20;

  static llvm::Expected<LineFile> open(llvm::StringRef path);
  LineFile(LineFile &&other);
  ~LineFile();

  /// The next line without its end; false behind the last.
  llvm::Expected<bool> next(Line &line);

private:
  LineFile(llvm::StringRef path, int descriptor) : path(path), descriptor(descriptor) {}
  llvm::Expected<bool> fill();

  std::string path;
  int descriptor;
  std::vector<char> buffer;
  size_t begin = 0, end = 0;
  int64_t number = 0;
};

} // namespace ctxc::batch

#endif // CTXC_LIB_BATCH_LINES_H
