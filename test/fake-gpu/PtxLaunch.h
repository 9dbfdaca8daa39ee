// One launch while it is interpreted: its threads, and what they touched.
#ifndef CTXC_TEST_FAKE_GPU_PTXLAUNCH_H
#define CTXC_TEST_FAKE_GPU_PTXLAUNCH_H

#include "Ptx.h"
#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace ptx {

template <typename To, typename From> To as(From from) {
  To to = 0;
  std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
  return to;
}

/// Who touched a word of memory last, and after how many barriers.
struct Touch {
  int32_t writer = -1, reader = -1;
  uint32_t written = 0, read = 0;
  bool isUnderWay = false; ///< a copy into it was begun, and nobody has waited for it
};

/// cp.async: what is to be in shared memory from the wait on.
struct AsyncCopy {
  uint64_t to = 0;
  char bytes[16] = {};
};

/// Those of 256 bytes of the device's memory, by pieces of 2.
struct TouchPage {
  Touch pieces[128];
};

struct Thread {
  unsigned id = 0;
  size_t at = 0;
  /// AtWarp: at an instruction that the lanes of a warp execute together.
  enum { Running, AtWarp, AtBarrier, Done } state = Running;
  uint64_t *registers = nullptr;
  std::vector<AsyncCopy> copies;              ///< of no group yet
  std::vector<std::vector<AsyncCopy>> groups; ///< the oldest first
};

class Launch {
public:
  Launch(const Kernel &kernel, unsigned blocks, unsigned threads,
         const std::vector<uint64_t> &arguments, const RangeOf &rangeOf)
      : kernel(kernel), blocks(blocks), threads(threads), arguments(arguments), rangeOf(rangeOf) {}

  std::string run();

private:
  void fail(const Thread &thread, const std::string &what);
  void beginBlock();
  void runBlock();
  void runWarp(unsigned first, unsigned last);
  void step(Thread &thread);
  static uint64_t read(const Thread &thread, Operand operand) { return thread.registers[operand]; }
  static void write(Thread &thread, const Instruction &i, uint64_t bits) {
    thread.registers[i.results[0]] = bits;
  }

  // Memory
  bool isInShared(uint64_t address, uint64_t bytes) const {
    return address <= shared.size() && bytes <= shared.size() - address;
  }
  bool isValid(uint64_t address, uint64_t bytes);
  Touch &touchOf(uint64_t address);
  void access(Thread &thread, const Instruction &i);
  void touch(Thread &thread, bool isShared, uint64_t address, bool stores, bool isSame);

  // Instructions of a warp
  void shuffle(unsigned first);
  void loadMatrices(unsigned first);
  void multiplyMatrices(unsigned first);

  // Copies that go on beside the thread
  void beginCopy(Thread &thread, const Instruction &i);
  void waitForGroups(Thread &thread, size_t left);

  // Numbers
  template <typename T> T ofFloats(Thread &thread, const Instruction &i);
  uint64_t arithmetic(Thread &thread, const Instruction &i);
  uint64_t ofWholes(Thread &thread, const Instruction &i);
  void compare(Thread &thread, const Instruction &i);
  void convert(Thread &thread, const Instruction &i);

  const Kernel &kernel;
  const unsigned blocks, threads;
  const std::vector<uint64_t> &arguments;
  const RangeOf &rangeOf;
  std::vector<Range> ranges; ///< that were asked for
  unsigned block = 0;
  std::vector<Thread> all;
  std::vector<uint64_t> registers; ///< of all threads
  std::vector<char> shared;
  std::vector<Touch> sharedTouches;
  std::unordered_map<uint64_t, TouchPage> touches; ///< of the device's memory
  /// Pages that were asked for lately, by the last bits of their numbers.
  struct {
    uint64_t number = 0;
    TouchPage *page = nullptr;
  } lately[64];
  uint32_t epoch = 1;
  std::string error;
};

/// A whole number of the type's width, extended by its sign; and back.
inline uint64_t narrow(uint64_t bits, Type type) {
  unsigned left = 64 - 8 * sizeOf(type);
  return bits << left >> left;
}
inline int64_t whole(uint64_t bits, Type type) {
  unsigned left = 64 - 8 * sizeOf(type);
  return isSigned(type) ? int64_t(bits << left) >> left : int64_t(narrow(bits, type));
}

} // namespace ptx

#endif // CTXC_TEST_FAKE_GPU_PTXLAUNCH_H
