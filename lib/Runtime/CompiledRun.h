// A run of compiled kernels, and what it keeps of its tokens for each step.
//
// A kernel sees the slots of a state from the first one in memory on. Where the step's attention
// has a window, slots before the window need not be there: when memory for them runs out, the
// slots that tokens to come still see are moved to its start. That is a ring whose slots stay in
// order, so that kernels know nothing of it. The first slot that is kept is a multiple of
// slotsOfTile, on which attention's sums are divided, so that the numbers are, bit for bit, those
// of a run that keeps all.
//
// What a recurrence carries is one tensor, whatever the number of tokens, and is kept for two of
// their numbers: those before the last call, to which the run can be truncated, and those behind
// it. A run that is truncated further reads the tokens again that lead there.
#ifndef CTXC_LIB_RUNTIME_COMPILEDRUN_H
#define CTXC_LIB_RUNTIME_COMPILEDRUN_H

#include "ctxc/Program/Executor.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

namespace ctxc {

void *allocateCache(size_t bytes);
void freeCache(void *memory, size_t bytes);

/// An allocator of large pages for the KV cache of a long context, which a token reads from end to
/// end (ctxc/Support/LargePages.h).
template <typename T> struct CacheAllocator {
  using value_type = T;
  T *allocate(size_t count) { return static_cast<T *>(allocateCache(count * sizeof(T))); }
  void deallocate(T *memory, size_t count) { freeCache(memory, count * sizeof(T)); }
  bool operator==(CacheAllocator) const { return true; }
  bool operator!=(CacheAllocator) const { return false; }
};

/// What a contextual op keeps of consecutive tokens: so many bytes of each, the same number for
/// each of its groups. The slots of a group lie one after the other, before those of the next group
/// (StateLayout::ByGroup).
struct SlotMemory {
  size_t bytesOfSlot = 0;
  int64_t groups = 1;
  std::vector<char, CacheAllocator<char>> bytes;

  size_t bytesOfGroup() const { return bytesOfSlot / groups; }
  /// For how many slots there is memory.
  int64_t room() const { return bytes.size() / bytesOfSlot; }
  /// Copies the slots [from, from + count) of each group of `other` to the first slots here, which
  /// may be the same memory.
  void take(const SlotMemory &other, int64_t from, int64_t count);
};

/// What the recurrences of one step carry on from the first `count` tokens.
struct CarriedState {
  int64_t count = 0;
  std::vector<std::vector<float>> memories; ///< one for each recurrence
};

/// What all contextual ops of one step keep.
struct StepState {
  int64_t first = 0;                            ///< the token in the first slot
  int64_t room = 0;                             ///< how many slots there is memory for
  std::optional<int64_t> window = std::nullopt; ///< windowOf the step, where the run keeps no more
  std::vector<SlotMemory> memories;
  bool isRecurrent = false; ///< recurrences of the step carry something
  std::vector<CarriedState> carried;

  /// Which of `carried` have what recurrences carry on from the first `count` tokens, zeros for
  /// none, and place for what they carry on from `count` + `rows`. Both may be one. What is carried
  /// on from the first `held` stays.
  std::pair<size_t, size_t> carry(int64_t count, int64_t rows, int64_t held);
  /// The same without a place for more.
  size_t carriedFrom(int64_t count);
  /// The memory of recurrence `index`, of so many numbers.
  float *memoryOf(size_t place, size_t index, size_t numbers);
  /// Whether recurrences can go on from the first `count` tokens.
  bool carries(int64_t count) const {
    return count == 0 || !isRecurrent ||
           llvm::any_of(carried, [&](const CarriedState &each) { return each.count == count; });
  }

  /// Whether tokens after the first `count` find what they see.
  bool suffices(int64_t count) const {
    return first == 0 || (window && first <= count - *window + 1);
  }
  /// Makes room for `rows` tokens behind the first `count`, of `capacity` in all.
  void makeRoom(int64_t count, int64_t rows, int64_t capacity);
  /// The memory of contextual op's operand `index`, for `room` slots, with `bytesOfSlot` for each.
  char *memory(size_t index, size_t bytesOfSlot, int64_t groups);
  /// A copy of the state of the first `count` tokens, of at most `capacity`.
  StepState copy(int64_t count, int64_t capacity) const;
};

/// How many slots of a step with this window makeRoom makes where no more are needed.
int64_t roomOfWindow(std::optional<int64_t> window, int64_t rows, int64_t capacity);

class CompiledRun : public Run {
public:
  CompiledRun(int64_t capacity, size_t steps) : capacity(capacity), slots(capacity), steps(steps) {}
  int64_t size() const override { return count; }
  int64_t last() const { return count ? slots[count - 1] : -1; }
  void truncate(int64_t tokens) override { count = std::min(count, tokens); }
  /// To be called where a call begins: what the run can be truncated to stays until the next.
  void begin() { held = count; }
  /// Remembers the tokens behind the first `before`, which may have to be read again.
  void remember(int64_t before, llvm::ArrayRef<Input> tokens, bool withPatch);
  /// The most of the first `count` tokens from which on the run's recurrences can go on.
  int64_t carriedUpTo() const;

  /// Fails where the run no longer holds what the next token sees.
  llvm::Error checkSeen() const;

  int64_t capacity, count = 0;
  int64_t held = 0;           ///< its size when the last call began
  std::vector<int32_t> slots; ///< absolute positions of the tokens held
  std::vector<StepState> steps;
  std::vector<Input> sequence; ///< of a bidirectional model: the tokens of its first call
  /// Where recurrences carry something, the tokens held, and how many come before the first that a
  /// patch has changed.
  std::vector<Input> given;
  int64_t plain = 0;
};

/// Gives a run back the tokens that it holds now, unless `release` is called: also what tokens of
/// the call may push out, where the call's tokens go through the layers in several chunks.
class RunRestorer {
public:
  RunRestorer(CompiledRun &run, bool inChunks);
  ~RunRestorer();
  RunRestorer(const RunRestorer &) = delete;
  void release() { isReleased = true; }

private:
  CompiledRun &run;
  const int64_t count;
  bool isReleased = false;
  std::vector<StepState> saved; ///< for each step with a window; those without are empty
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_COMPILEDRUN_H
