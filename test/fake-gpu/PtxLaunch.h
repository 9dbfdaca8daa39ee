// One launch while it is interpreted: its threads, and the memory that they have accessed.
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

/// The last thread that accessed a word of memory, and how many barriers it had passed.
struct Touch {
  int32_t writer = -1, reader = -1;
  uint32_t written = 0, read = 0;
  bool isUnderWay = false; ///< a copy into it was begun, and nobody has waited for it yet
};

/// A cp.async: its bytes are in shared memory only after a wait.
struct AsyncCopy {
  uint64_t to = 0;
  char bytes[16] = {};
};

/// The accesses to 256 bytes of the device's memory, in units of 2 bytes.
struct TouchPage {
  Touch pieces[128];
};

struct Thread {
  unsigned id = 0;
  size_t at = 0;
  /// AtWarp: at an instruction that the lanes of a warp execute together.
  enum { Running, AtWarp, AtBarrier, Done } state = Running;
  uint64_t *registers = nullptr;
  std::vector<AsyncCopy> copies;              ///< in no group yet
  std::vector<std::vector<AsyncCopy>> groups; ///< oldest first
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

  // Instructions that a whole warp executes
  void shuffle(unsigned first);
  void loadMatrices(unsigned first);
  void multiplyMatrices(unsigned first);

  // Asynchronous copies
  void beginCopy(Thread &thread, const Instruction &i);
  void waitForGroups(Thread &thread, size_t left);

  // Arithmetic
  template <typename T> T ofFloats(Thread &thread, const Instruction &i);
  uint64_t arithmetic(Thread &thread, const Instruction &i);
  uint64_t ofWholes(Thread &thread, const Instruction &i);
  void compare(Thread &thread, const Instruction &i);
  void convert(Thread &thread, const Instruction &i);

  const Kernel &kernel;
  const unsigned blocks, threads;
  const std::vector<uint64_t> &arguments;
  const RangeOf &rangeOf;
  std::vector<Range> ranges; ///< the ranges looked up so far
  unsigned block = 0;
  std::vector<Thread> all;
  std::vector<uint64_t> registers; ///< of all threads
  std::vector<char> shared;
  std::vector<Touch> sharedTouches;
  std::unordered_map<uint64_t, TouchPage> touches; ///< to the device's memory
  /// Recently used pages, indexed by the last bits of their numbers.
  struct {
    uint64_t number = 0;
    TouchPage *page = nullptr;
  } lately[64];
  uint32_t epoch = 1;
  std::string error;
};

/// Truncates an integer to the type's width, and extends it by its sign.
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
