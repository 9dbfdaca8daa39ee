// A device that records its work, and lets another device do it, if there is one.
#ifndef CTXC_BENCH_GPU_RECORDINGDEVICE_H
#define CTXC_BENCH_GPU_RECORDINGDEVICE_H

#include "bench/gpu/Recording.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/GPU/Device.h"
#include <map>

namespace ctxc::bench {

/// Stands for weights without loading them: its addresses tell which random numbers to draw.
class DrawnWeights : public Weights {
public:
  DrawnWeights();
  ~DrawnWeights() override;
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override;
  llvm::Expected<std::string> hash() override { return "drawn"; }
  /// The kind of numbers at `address`, if the address is one of these.
  std::optional<Numbers> kindOf(const void *address) const;

private:
  static constexpr size_t poolBytes = size_t(8) << 30;
  static constexpr size_t kinds = size_t(Numbers::Kinds);
  char *pools = nullptr; ///< addresses without memory
};

class RecordingDevice : public Device {
public:
  /// Where `inner` is null nothing is computed, and downloads give tiny numbers.
  RecordingDevice(std::string target, std::unique_ptr<Device> inner, const DrawnWeights *drawn,
                  llvm::raw_ostream &os);

  std::string name() const override { return "a recording"; }
  std::string target() const override { return codeTarget; }
  size_t memory() const override { return inner ? inner->memory() : SIZE_MAX; }
  llvm::Error load(llvm::StringRef code) override;
  llvm::Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  llvm::Error upload(Buffer &to, size_t offset, llvm::ArrayRef<char> from) override;
  llvm::Error download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) override;
  llvm::Expected<std::unique_ptr<Sequence>> record(llvm::ArrayRef<Launch> launches) override;
  llvm::Expected<double> run(Sequence &sequence) override;

  void note(llvm::StringRef what, llvm::StringRef why);

  std::string label; ///< label of the following runs; runs with an empty label are not measured

private:
  struct RecordedBuffer;
  struct RecordedSequence;
  std::string codeTarget;
  std::unique_ptr<Device> inner;
  const DrawnWeights *drawn;
  RecordingWriter writer;
  uint64_t buffers = 0, sequences = 0;
};

} // namespace ctxc::bench

#endif // CTXC_BENCH_GPU_RECORDINGDEVICE_H
