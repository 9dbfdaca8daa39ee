// What ranks say to each other, as bytes. Both ends are of one build, which is checked when they
// meet.
#ifndef CTXC_LIB_RUNTIME_SHARD_MESSAGES_H
#define CTXC_LIB_RUNTIME_SHARD_MESSAGES_H

#include "ctxc/Program/Executor.h"
#include "ctxc/Runtime/Shard/Ranks.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

namespace ctxc {

/// What rank 0 asks of the others.
enum class Request : int64_t {
  Begin, ///< make the executor of a device
  Forward,
  Next,
  Patch,
  PatchEach,
  Copy,
  Head,
  Step,
  Question,
  Facts,
  GoOn, ///< with the next row of PatchEach
  Stop, ///< PatchEach
  End
};

/// Writes a message, value by value; every value fills whole words.
class MessageWriter {
public:
  void number(int64_t x) { words.push_back(static_cast<uint64_t>(x)); }
  void numbers(llvm::ArrayRef<int64_t> all) { array(all); }
  void floats(llvm::ArrayRef<float> all) { array(all); }
  void text(llvm::StringRef text) { array(llvm::ArrayRef(text.data(), text.size())); }
  /// In half the bytes where all of them are float32's.
  void doubles(llvm::ArrayRef<double> all);
  void inputs(llvm::ArrayRef<Input> inputs);
  void logits(const Logits &logits);
  void patch(const Patch &patch);
  void obligations(llvm::ArrayRef<LayerObligations> layers);

  /// Adds all of `other`.
  void append(const MessageWriter &other) { llvm::append_range(words, other.words); }

  const Message &message() const { return words; }
  Message take() { return std::move(words); }

private:
  template <typename T> void array(llvm::ArrayRef<T> all) {
    number(all.size());
    size_t at = words.size();
    words.resize(at + (all.size() * sizeof(T) + 7) / 8);
    if (!all.empty())
      std::memcpy(words.data() + at, all.data(), all.size() * sizeof(T));
  }
  Message words;
};

/// Reads what a MessageWriter wrote, in the same order.
class MessageReader {
public:
  explicit MessageReader(Message words) : words(std::move(words)) {}

  int64_t number() { return static_cast<int64_t>(*next(1)); }
  std::vector<int64_t> numbers() { return array<int64_t>(); }
  std::vector<float> floats() { return array<float>(); }
  std::string text() {
    std::vector<char> all = array<char>();
    return {all.begin(), all.end()};
  }
  std::vector<double> doubles();
  std::vector<Input> inputs();
  Logits logits();
  Patch patch();
  /// Adds to those of `layers`.
  void obligations(llvm::MutableArrayRef<LayerObligations> layers);

private:
  const uint64_t *next(size_t count) {
    assert(count <= words.size() - at && "a message of another build");
    at += count;
    return words.data() + at - count;
  }
  template <typename T> std::vector<T> array() {
    std::vector<T> all(number());
    const uint64_t *from = next((all.size() * sizeof(T) + 7) / 8);
    if (!all.empty())
      std::memcpy(all.data(), from, all.size() * sizeof(T));
    return all;
  }
  Message words;
  size_t at = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_SHARD_MESSAGES_H
