// A GPU whose driver has CUDA streams and graphs: NVIDIA's, and AMD's HIP, whose functions are
// the same except for their names (GraphApi.h). A sequence is a graph, captured once and launched
// for each token. Memory is in GraphDevice.cpp, code and sequences in GraphSequence.cpp, sums
// over devices in GraphSums.cpp; how a
// device is found and made current in a thread differs between drivers.
#ifndef CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHDEVICE_H
#define CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHDEVICE_H

#include "ctxc/Runtime/GPU/Device.h"
#include "lib/Runtime/GPU/Graphs/Staging.h"
#include "llvm/ADT/StringMap.h"
#include <functional>

namespace ctxc::graphs {

class GraphDevice;

struct GraphBuffer : Device::Buffer {
  GraphDevice *owner = nullptr;
  Pointer address = 0;
  ~GraphBuffer() override;
};

class GraphDevice : public Device {
public:
  std::string name() const override { return label; }
  size_t memory() const override { return free(); }

  llvm::Error load(llvm::StringRef code) override;
  llvm::Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  llvm::Error upload(Buffer &to, size_t offset, llvm::ArrayRef<char> from) override;
  llvm::Error download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) override;
  llvm::Error downloadAll(llvm::ArrayRef<Piece> pieces) override;
  llvm::Expected<std::unique_ptr<Sequence>> record(llvm::ArrayRef<Launch> launches) override;
  llvm::Expected<double> run(Sequence &sequence) override;
  llvm::Error enqueue(Sequence &sequence) override;
  llvm::Error finish() override;
  llvm::Expected<std::unique_ptr<DeviceSums>> openSums() override;

  /// Makes the device current in the thread; an error after a fault, when nothing more is run.
  llvm::Error enter();
  /// Makes the device current in the thread, to free its memory: false after a fault, when all
  /// memory goes with the device.
  bool canFree() { return fault.empty() && !makeCurrent(); }
  /// What failed, in the driver's words.
  llvm::Error failed(llvm::StringRef what, Result result) const;
  /// Checks a result that says how kernels ended, and remembers a fault.
  llvm::Error ended(llvm::StringRef what, Result result);

  Api api;
  Stream stream = nullptr;
  /// Where set, what is called while the device is waited for (DeviceSums::join).
  std::function<llvm::Error()> whileWaiting;

protected:
  /// Targets and messages begin with `brand` (cuda). Where `isChecked`, every run goes launch by
  /// launch.
  GraphDevice(llvm::StringRef brand, bool isChecked) : brand(brand), isChecked(isChecked) {}

  virtual Result makeCurrent() const = 0;

  /// Finds all functions in `library` and starts the driver; `lacking` says which drivers have them
  /// all.
  llvm::Error start(void *library, llvm::StringRef file, Names names, llvm::StringRef lacking);
  /// The number of devices; 0 where the driver says that there is none.
  llvm::Expected<int> count() const;
  /// Called once the device is chosen and can be made current.
  llvm::Error openStream();
  /// Closes what openStream opened; called by the destructors of derived classes.
  void closeStream();
  bool hasFaulted() const { return !fault.empty(); }

  const std::string brand;
  std::string label; ///< the device's name

private:
  struct Recorded;
  size_t free() const;
  llvm::Error checkRange(llvm::StringRef what, const Buffer &buffer, size_t offset,
                         size_t bytes) const;
  llvm::Expected<Function> functionOf(const Launch &launch);
  llvm::Error capture(Recorded &recorded);
  llvm::Error runEach(const Recorded &recorded);
  /// All launches, as messages name them.
  static std::string allOf(const Recorded &recorded);
  Result launch(const Recorded &recorded, size_t i);
  /// Waits for the stream. `what` was given to it last.
  llvm::Error wait(llvm::StringRef what);

  const bool isChecked;
  std::string fault;
  Event begin = nullptr, end = nullptr;
  /// The result of a load.
  struct Code {
    Module module = nullptr;
    llvm::StringMap<Function> functions;
  };
  std::vector<Code> codes;
  Staging staging;
};

} // namespace ctxc::graphs

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHDEVICE_H
