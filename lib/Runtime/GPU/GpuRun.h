// A run on a device: its state there, and the sequences that were recorded for it.
#ifndef CTXC_LIB_RUNTIME_GPU_GPURUN_H
#define CTXC_LIB_RUNTIME_GPU_GPURUN_H

#include "ctxc/Program/Executor.h"
#include "lib/Runtime/GPU/GpuStore.h"
#include <map>

namespace ctxc {

class GpuProgram;

/// Recorded launches, with what ranks exchange before them.
struct RecordedPart {
  std::vector<DeviceTransfer> before;
  std::unique_ptr<Device::Sequence> sequence;
};

/// Recorded launches and the temporaries that they use: one part, or several where ranks share
/// layers.
struct RecordedSteps {
  std::vector<std::shared_ptr<Device::Buffer>> temporaries;
  std::vector<RecordedPart> parts;
  bool isRecorded() const { return !parts.empty(); }
};

/// The recorded sequences of a chunk of a prompt.
struct RecordedChunk {
  GpuProgram *program = nullptr; ///< null: tokens run one by one
  bool isKnown = false;
  RecordedSteps steps;
};

/// The slots of steps with the same window. Where the run keeps no more than tokens see, there is
/// memory for fewer than it has tokens: when it is full, those that tokens to come still see are
/// moved to its start, as in a CompiledRun.
struct Slots {
  int64_t first = 0; ///< the token in the first slot
  int64_t room = 0;  ///< how many there are
  BufferPtr positions;
  bool isHidden = false; ///< whether some of the tokens' positions are not in the buffer
  /// Before the first move that takes away what a call must give back when it is undone: each
  /// state's slots up to those that the call's tokens took, and the token in the first of them.
  std::vector<std::vector<char>> saved;
  int64_t savedFirst = 0;
};

/// A run: the state of each step's contextual ops on the device.
class GpuRun : public Run {
public:
  /// The attention of a token divides its slots among so many subgroups at most. The first slot
  /// that is kept is a multiple of it, so that the numbers are, bit for bit, those of a run that
  /// keeps all.
  static constexpr int64_t kSlotsTogether = 1024;

  /// With `padding` more slots of state than tokens need, for the padding of a chunk that is not
  /// full. Slots are moved once in `movedTogether` tokens, which is at least a chunk.
  GpuRun(std::shared_ptr<Device> device, int64_t id, int64_t capacity, int64_t padding,
         int64_t movedTogether, llvm::ArrayRef<int64_t> windows)
      : device(std::move(device)), id(id), capacity(capacity), room(capacity + padding),
        movedTogether(movedTogether), windows(windows), positions(capacity),
        states(windows.size()) {}
  int64_t size() const override { return count; }
  int64_t last() const { return count ? positions[count - 1] : -1; }
  void truncate(int64_t tokens) override { count = std::min(count, tokens); }

  /// The slots of steps with this window; 0: they have none.
  Slots &slotsOf(int64_t window);
  const Slots &slotsOf(int64_t window) const { return slots.at(keptOf(window)); }
  /// Fails where the run no longer holds what its next token sees.
  llvm::Error checkSeen() const;
  /// To be called where a call begins.
  void begin();
  /// Makes room for `rows` more tokens in the slots of steps with this window.
  llvm::Error makeRoom(int64_t window, int64_t rows);
  /// Gives the run back the tokens that it held when the call began.
  llvm::Error undo();

  std::shared_ptr<Device> device; ///< outlives the buffers
  int64_t id, capacity, room, movedTogether, count = 0, held = 0;
  llvm::ArrayRef<int64_t> windows; ///< of each step
  std::vector<int32_t> positions;  ///< absolute positions of its tokens
  std::map<int64_t, Slots> slots;  ///< by window; under 0 where all tokens are kept
  /// The states of each step, in order: as many elements as there are slots.
  std::vector<std::map<size_t, BufferPtr>> states;

  /// The sequences recorded for this run, without and with a patch: a token, without and with the
  /// head, and a short and a long chunk. Those with a reduced run are found by its id and the first
  /// patched layer.
  RecordedSteps forward[2][2];
  RecordedChunk chunk[2][2];
  std::map<std::pair<int64_t, int64_t>, RecordedSteps> patch;
  std::map<std::pair<int64_t, int64_t>, std::array<RecordedChunk, 2>> patchChunk;
  /// Single steps, by how many tokens go together.
  std::map<std::pair<size_t, int64_t>, RecordedSteps> steps;

private:
  llvm::Error forStates(int64_t window,
                        llvm::function_ref<llvm::Error(Device::Buffer &, size_t)> body);
  int64_t keptOf(int64_t window) const { return keeps() == Keeps::All ? 0 : window; }
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPURUN_H
