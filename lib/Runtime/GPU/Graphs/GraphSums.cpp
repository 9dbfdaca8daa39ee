// Sums over devices by NVIDIA's NCCL, and by AMD's RCCL, whose functions have the same names.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/DeviceSums.h"
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Graphs/GraphDevice.h"
#include "lib/Runtime/GPU/Graphs/NcclApi.h"
#include <cstring>
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::graphs;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

class GraphSums : public DeviceSums {
public:
  GraphSums(GraphDevice &device, const nccl::Api &api) : device(device), api(api) {}
  ~GraphSums() override {
    device.whileWaiting = nullptr;
    if (!group)
      return;
    // After a fault, or with a rank gone, nothing is waited for.
    if (isBroken || !device.canFree())
      api.CommAbort(group);
    else
      api.CommDestroy(group);
  }

  size_t idBytes() const override { return sizeof(nccl::Id); }
  Expected<std::vector<char>> makeId() override {
    nccl::Id id;
    if (Error error = check("making a group of ranks", api.GetUniqueId(&id)))
      return std::move(error);
    return std::vector<char>(id.bytes, id.bytes + sizeof id.bytes);
  }
  Error join(ArrayRef<char> bytes, int rank, int ranks, std::function<Error()> isAlone) override {
    if (Error error = device.enter())
      return error;
    nccl::Id id;
    std::memcpy(id.bytes, bytes.data(), sizeof id.bytes);
    if (Error error =
            check("joining the group of ranks", api.CommInitRank(&group, ranks, id, rank))) {
      group = nullptr;
      return error;
    }
    device.whileWaiting = [this, isAlone = std::move(isAlone)]() -> Error {
      int result = 0;
      Error error = check("asking how a sum goes", api.CommGetAsyncError(group, &result));
      if (!error)
        error = check("a sum over devices", result);
      if (!error)
        error = isAlone();
      isBroken |= bool(error);
      return error;
    };
    return Error::success();
  }

  Error copy(Piece to, Piece from, size_t bytes, size_t rows) override {
    Copy2D copy;
    for (auto [side, piece] : {std::pair(&copy.to, to), std::pair(&copy.from, from)}) {
      side->device = addressOf(*piece.buffer) + piece.offset;
      side->pitch = piece.stride;
    }
    copy.widthInBytes = bytes;
    copy.height = rows;
    Result result = device.api.Memcpy2DAsync(&copy, device.stream);
    return result ? device.failed("copying a part of a value", result) : Error::success();
  }
  Error clear(Device::Buffer &buffer, size_t bytes) override {
    Result result = device.api.MemsetD8Async(addressOf(buffer), 0, bytes, device.stream);
    return result ? device.failed("clearing a value", result) : Error::success();
  }
  Error sum(Device::Buffer &numbers, size_t count) override {
    void *address = reinterpret_cast<void *>(addressOf(numbers));
    return check("a sum over devices", api.AllReduce(address, address, count, nccl::kFloat32,
                                                     nccl::kSum, group, device.stream));
  }

private:
  static Pointer addressOf(Device::Buffer &buffer) {
    return static_cast<GraphBuffer &>(buffer).address;
  }
  Error check(StringRef what, int result) {
    if (!result)
      return Error::success();
    isBroken = true;
    const char *words = api.GetErrorString(result);
    return makeError(device.target() + ": " + what +
                     " failed: " + (words ? words : "error " + std::to_string(result)));
  }

  GraphDevice &device;
  const nccl::Api api;
  nccl::Group group = nullptr;
  bool isBroken = false;
};

} // namespace

Expected<std::unique_ptr<DeviceSums>> GraphDevice::openSums() {
  const bool isCuda = brand == "cuda";
  const std::string package = isCuda ? "NVIDIA's NCCL (libnccl2)" : "AMD's RCCL (rccl)";
  auto library =
      openDriver({isCuda ? "libnccl.so.2" : "librccl.so.1"}, brand + ": there is no " + package);
  if (!library)
    return library.takeError();
  nccl::Api found;
  if (const char *lacking = found.lookUp([&](const char *name) { return dlsym(*library, name); }))
    return makeError(brand + ": the library of " + package + " lacks " + lacking +
                     "; expected version 2.7 or later");
  return std::make_unique<GraphSums>(*this, found);
}
