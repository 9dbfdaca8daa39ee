//===- GgufKeys.h - the metadata of a GGUF file, key by key ---------------===//
#ifndef CTXC_LIB_CHECKPOINT_GGUFKEYS_H
#define CTXC_LIB_CHECKPOINT_GGUFKEYS_H

#include "ctxc/Checkpoint/ConfigReader.h"
#include "ctxc/Checkpoint/GgufModel.h"

namespace ctxc {

/// The keys that begin with `prefix`, without it; an array of very many entries is a text that says
/// so.
llvm::json::Object jsonOfGguf(const GgufFile &file, llvm::StringRef prefix);

/// Reads the keys that begin with the architecture's name; what is not read goes by the table
/// ggufArchitectureKeys.
class GgufKeys {
public:
  GgufKeys(const GgufFile &file, llvm::StringRef architecture, Problems &problems);

  bool has(llvm::StringRef key) const { return reader.has(key); }
  std::optional<int64_t> integer(llvm::StringRef key) {
    return reader.has(key) ? std::optional(reader.integer(key, 0, 0, most)) : std::nullopt;
  }
  int64_t needed(llvm::StringRef key) { return reader.integer(key, std::nullopt, 1, most); }
  std::optional<double> number(llvm::StringRef key) {
    return reader.has(key) ? std::optional(reader.number(key, 0, -1e30, 1e30)) : std::nullopt;
  }
  double neededNumber(llvm::StringRef key) {
    if (!reader.has(key))
      reader.missing(key);
    return number(key).value_or(1);
  }
  bool neededFlag(llvm::StringRef key) {
    if (!reader.has(key))
      reader.missing(key);
    return flag(key).value_or(false);
  }
  std::optional<std::string> text(llvm::StringRef key) {
    return reader.has(key) ? std::optional(reader.text(key, "")) : std::nullopt;
  }
  std::optional<bool> flag(llvm::StringRef key) {
    return reader.has(key) ? std::optional(reader.flag(key, false)) : std::nullopt;
  }
  void ignore(llvm::StringRef key) { reader.value(key); }

  /// A key whose one supported value is `supported`.
  void require(llvm::StringRef key, int64_t supported, llvm::StringRef why = "") {
    std::optional<int64_t> found = integer(key);
    if (found && *found != supported)
      reader.problem(key, "is not supported; expected " + llvm::Twine(supported) + why);
  }
  /// A problem of one key, with its value.
  void problem(llvm::StringRef key, const llvm::Twine &message) { reader.problem(key, message); }
  void problem(const llvm::Twine &message) { reader.problem(message); }
  void finish() { reader.finish(); }

private:
  static constexpr int64_t most = int64_t(1) << 40;
  llvm::json::Object values;
  ConfigReader reader;
};

} // namespace ctxc

#endif // CTXC_LIB_CHECKPOINT_GGUFKEYS_H
