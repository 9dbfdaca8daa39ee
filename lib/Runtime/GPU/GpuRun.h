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

/// A run: the state of each step's contextual ops on the device.
class GpuRun : public Run {
public:
  /// With `padding` more slots of state than tokens need, for the padding of a chunk that is not
  /// full.
  GpuRun(std::shared_ptr<Device> device, int64_t id, int64_t capacity, int64_t padding,
         size_t steps)
      : device(std::move(device)), id(id), capacity(capacity), room(capacity + padding),
        slots(capacity), states(steps) {}
  int64_t size() const override { return count; }
  int64_t last() const { return count ? slots[count - 1] : -1; }
  void truncate(int64_t tokens) override { count = std::min(count, tokens); }

  std::shared_ptr<Device> device; ///< outlives the buffers
  int64_t id, capacity, room, count = 0;
  std::vector<int32_t> slots; ///< absolute positions of the tokens held
  BufferPtr slotBuffer;
  bool isHidden = false; ///< whether some of those positions are not in the buffer
  /// The states of each step, in order: room × elements each.
  std::vector<std::map<size_t, BufferPtr>> states;

  /// The sequences recorded for this run, without and with a patch: a token, without and with the
  /// head, and a short and a long chunk. Those with a reduced run are found by its id and the first
  /// patched layer.
  RecordedSteps forward[2][2];
  RecordedChunk chunk[2][2];
  std::map<std::pair<int64_t, int64_t>, RecordedSteps> patch;
  std::map<std::pair<int64_t, int64_t>, std::array<RecordedChunk, 2>> patchChunk;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPURUN_H
