//===- GgufKeys.h - the architecture's keys of a GGUF file, each read once ===//
#ifndef CTXC_LIB_CHECKPOINT_GGUFKEYS_H
#define CTXC_LIB_CHECKPOINT_GGUFKEYS_H

#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include <set>

namespace ctxc {

/// Reads the keys that begin with the architecture's name; one that was not read is a problem.
class GgufKeys {
public:
  GgufKeys(const GgufFile &file, llvm::StringRef architecture)
      : file(file), path(file.file().path()), prefix(architecture.str() + ".") {}

  bool has(llvm::StringRef key) const { return file.metadata().count(prefix + key.str()); }

  std::optional<int64_t> integer(llvm::StringRef key) {
    return expect(key, file.integer(take(key)), "an integer");
  }
  int64_t needed(llvm::StringRef key) {
    if (!has(key))
      problem("has no key " + quoted(prefix + key.str()));
    return integer(key).value_or(1);
  }
  std::optional<double> number(llvm::StringRef key) {
    return expect(key, file.number(take(key)), "a number");
  }
  std::optional<llvm::StringRef> text(llvm::StringRef key) {
    return expect(key, file.text(take(key)), "text");
  }
  std::optional<bool> flag(llvm::StringRef key) {
    return expect(key, file.flag(take(key)), "true or false");
  }
  void ignore(llvm::StringRef key) { take(key); }

  /// A key whose one supported value is `supported`.
  void require(llvm::StringRef key, int64_t supported, llvm::StringRef why = "") {
    std::optional<int64_t> found = integer(key);
    if (found && *found != supported)
      problem("key " + quoted(prefix + key.str()) + " = " + llvm::Twine(*found) +
              " is not supported; expected " + llvm::Twine(supported) + why);
  }

  void problem(const llvm::Twine &message) {
    problems = joinErrors(std::move(problems), makeError(path + ": " + message));
  }
  llvm::Error finish() {
    for (const auto &[key, value] : file.metadata())
      if (llvm::StringRef(key).starts_with(prefix) && !read.count(key))
        problem("key " + quoted(key) +
                " is not known here, and may change what the model computes");
    return std::move(problems);
  }

private:
  std::string take(llvm::StringRef key) {
    std::string whole = prefix + key.str();
    read.insert(whole);
    return whole;
  }
  template <typename T>
  std::optional<T> expect(llvm::StringRef key, std::optional<T> found, llvm::StringRef what) {
    if (!found && has(key))
      problem("key " + quoted(prefix + key.str()) + " is not " + what);
    return found;
  }

  const GgufFile &file;
  std::string path, prefix;
  std::set<std::string> read;
  llvm::Error problems = llvm::Error::success();
};

} // namespace ctxc

#endif // CTXC_LIB_CHECKPOINT_GGUFKEYS_H
