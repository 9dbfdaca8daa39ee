// Sums over the devices of several processes, computed by the devices. What is requested here is
// given to the device behind the sequences that it was given before (Device::enqueue), and is not
// waited for.
#ifndef CTXC_LIB_RUNTIME_GPU_DEVICESUMS_H
#define CTXC_LIB_RUNTIME_GPU_DEVICESUMS_H

#include "ctxc/Runtime/GPU/Device.h"
#include "ctxc/Runtime/Shard/Neighbours.h"

namespace ctxc {

class DeviceSums {
public:
  virtual ~DeviceSums() = default;

  /// Identifies a new group of ranks, one of which makes it for all.
  virtual llvm::Expected<std::vector<char>> makeId() = 0;
  /// How many bytes it has.
  virtual size_t idBytes() const = 0;
  /// Joins the group; returns when all ranks have. While the device is waited for from then on,
  /// `others` are asked whether one is gone, which ends the waiting. Where others are waited for
  /// for 20 seconds, that is an error, or abandons them if it is within a call of the library.
  virtual llvm::Error join(llvm::ArrayRef<char> id, int rank, int ranks, Neighbours &others) = 0;

  /// A part of a matrix: `rows` pieces of `bytes` bytes, each `stride` bytes behind the one before.
  struct Piece {
    Device::Buffer *buffer;
    size_t offset, stride;
  };
  virtual llvm::Error copy(Piece to, Piece from, size_t bytes, size_t rows) = 0;
  virtual llvm::Error clear(Device::Buffer &buffer, size_t bytes) = 0;
  /// Every rank's numbers become the sum of all ranks'.
  virtual llvm::Error sum(Device::Buffer &numbers, size_t count) = 0;

  /// Numbers that go to another rank, or come from it.
  struct Passed {
    int rank;
    Device::Buffer *buffer;
    size_t offset, count; ///< the offset is in bytes
  };
  /// All ranks call it, and the parts that one sends another are those that this one receives.
  virtual llvm::Error pass(llvm::ArrayRef<Passed> sent, llvm::ArrayRef<Passed> received) = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_DEVICESUMS_H
