//===- Device.h - a GPU: memory, code, and sequences of launches ----------===//
//
// The executor's interface to a GPU's driver, which is loaded at run time: no toolkit is needed to
// build or to run. A target is a class in its own folder (lib/Runtime/GPU/…).
//
// A *sequence* is the work of one token: many launches, one after the other, recorded once and then
// replayed (a command buffer, a captured graph), so that the host does nothing between two
// launches. What changes from token to token is in buffers.
//
// Every call waits until the device is done. Errors have the driver's message and the request that
// failed; after a fault, nothing more runs.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_GPU_DEVICE_H
#define CTXC_RUNTIME_GPU_DEVICE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ctxc {

class DeviceSums;

class Device {
public:
  /// Memory of the device.
  struct Buffer {
    virtual ~Buffer() = default;
    size_t bytes = 0;
  };
  /// A launch of a function of loaded code, with a buffer for each of its arguments.
  struct Launch {
    std::string function;
    std::string source; ///< the block and layer that it computes, for messages
    uint32_t blocks = 1, threads = 1;
    std::vector<Buffer *> buffers;
    uint32_t code = 0; ///< the number of the load that the function came with, from 0 on
  };
  /// A part of a buffer, and where to download it to.
  struct Piece {
    const Buffer *from = nullptr;
    size_t offset = 0;
    llvm::MutableArrayRef<char> to;
  };
  /// Recorded launches; the buffers must outlive it.
  struct Sequence {
    virtual ~Sequence() = default;
  };

  virtual ~Device() = default;

  /// Opens the device that `target` (cuda, cuda:sm_90, rocm, vulkan) names: the first that can do
  /// what kernels need. cuda:checked and rocm:checked wait for each launch, so that the error names
  /// the kernel of a fault. `number`, of a rank among those of its machine, counts on from the
  /// first device, and after the last one begins again; there is one Vulkan device for all. Errors:
  /// no driver, no device, another architecture.
  static llvm::Expected<std::unique_ptr<Device>> open(llvm::StringRef target, int number = 0);

  /// The driver's name of the device.
  virtual std::string name() const = 0;
  /// The name of its code's target (GpuTarget::named).
  virtual std::string target() const = 0;
  /// How many bytes of memory it has.
  virtual size_t memory() const = 0;
  /// How many bytes one buffer may have.
  virtual size_t largestBuffer() const { return SIZE_MAX; }

  /// Loads code that GpuTarget::emit made, in addition to what was loaded before.
  virtual llvm::Error load(llvm::StringRef code) = 0;
  /// Memory filled with zeros. The error says how much there is.
  virtual llvm::Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;
  virtual llvm::Error upload(Buffer &to, size_t offset, llvm::ArrayRef<char> from) = 0;
  virtual llvm::Error download(llvm::MutableArrayRef<char> to, const Buffer &from,
                               size_t offset) = 0;
  /// Many downloads, waited for together.
  virtual llvm::Error downloadAll(llvm::ArrayRef<Piece> pieces) {
    for (const Piece &piece : pieces)
      if (llvm::Error error = download(piece.to, *piece.from, piece.offset))
        return error;
    return llvm::Error::success();
  }
  virtual llvm::Expected<std::unique_ptr<Sequence>> record(llvm::ArrayRef<Launch> launches) = 0;
  /// Runs the sequence to its end, and returns the seconds that the device took.
  virtual llvm::Expected<double> run(Sequence &sequence) = 0;
  /// Gives the sequence to the device, which runs it after what it was given before; need not wait
  /// for its end.
  virtual llvm::Error enqueue(Sequence &sequence) { return run(sequence).takeError(); }
  /// Waits until everything is done that the device was given.
  virtual llvm::Error finish() { return llvm::Error::success(); }

  /// Looks up the library that adds up numbers of the devices of several processes, without the
  /// hosts' memory (NCCL, RCCL). Errors: there is none.
  virtual llvm::Expected<std::unique_ptr<DeviceSums>> openSums();
};

} // namespace ctxc

#endif // CTXC_RUNTIME_GPU_DEVICE_H
