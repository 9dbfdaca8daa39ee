// Builds GGUF files byte by byte.
#ifndef CTXC_TEST_UNIT_CHECKPOINT_GGUFFIXTURE_H
#define CTXC_TEST_UNIT_CHECKPOINT_GGUFFIXTURE_H

#include "Fixture.h"

namespace ctxc::test {

template <typename T> std::string raw(T x) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &x, sizeof(T));
  return bytes;
}
inline std::string text(llvm::StringRef s) { return raw<uint64_t>(s.size()) + s.str(); }
inline std::string key(llvm::StringRef name, uint32_t type, const std::string &value) {
  return text(name) + raw(type) + value;
}
inline std::string integer(llvm::StringRef name, uint32_t value) {
  return key(name, 4, raw(value));
}
inline std::string real(llvm::StringRef name, float value) { return key(name, 6, raw(value)); }
inline std::string words(llvm::StringRef name, llvm::StringRef value) {
  return key(name, 8, text(value));
}

struct Entry {
  std::string name;
  std::vector<uint64_t> sizes; ///< fastest dimension first
  uint32_t type;
  uint64_t bytes;
};

struct GgufBytes : TempDirectory {
  uint32_t version = 3;
  std::vector<std::string> keys;
  std::vector<Entry> tensors;
  uint64_t alignment = 32, shift = 0;
  std::string tail;

  /// The file that the members describe; its data bytes count up.
  std::string file() const {
    std::string header =
        "GGUF" + raw(version) + raw<uint64_t>(tensors.size()) + raw<uint64_t>(keys.size());
    for (const std::string &k : keys)
      header += k;
    std::string data;
    for (const Entry &t : tensors) {
      header += text(t.name) + raw<uint32_t>(t.sizes.size());
      for (uint64_t size : t.sizes)
        header += raw(size);
      header += raw(t.type) + raw<uint64_t>(data.size() + shift);
      for (uint64_t i = 0; i < t.bytes; ++i)
        data.push_back(char(i % 7));
      data.resize((data.size() + alignment - 1) / alignment * alignment);
    }
    header.resize((header.size() + alignment - 1) / alignment * alignment);
    return header + data + tail;
  }
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_CHECKPOINT_GGUFFIXTURE_H
