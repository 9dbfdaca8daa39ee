// Sums over devices by NVIDIA's NCCL, and by AMD's RCCL, whose functions have the same names.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/DeviceSums.h"
#include "lib/Runtime/GPU/Devices.h"
#include "lib/Runtime/GPU/Graphs/CallLimit.h"
#include "lib/Runtime/GPU/Graphs/GraphDevice.h"
#include "lib/Runtime/GPU/Graphs/NcclApi.h"
#include <cstring>
#include <deque>
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
    if (device.canFree())
      for (auto *events : {&pending, &unused})
        for (Event event : *events)
          device.api.EventDestroy(event);
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
    if (Error error = check("making a group of ranks", [&] { return api.GetUniqueId(&id); }))
      return std::move(error);
    return std::vector<char>(id.bytes, id.bytes + sizeof id.bytes);
  }
  Error join(ArrayRef<char> bytes, int rank, int ranks, Neighbours &others) override {
    if (Error error = device.enter())
      return error;
    limit.emplace([this, &others](const char *what) {
      others.abandon(device.target() + ": " + what + " has not returned for " + seconds() +
                     "; it, or another rank, hangs");
    });
    nccl::Id id;
    std::memcpy(id.bytes, bytes.data(), sizeof id.bytes);
    if (Error error = check("joining the group of ranks",
                            [&] { return api.CommInitRank(&group, ranks, id, rank); })) {
      group = nullptr;
      return error;
    }
    device.whileWaiting = [this, &others]() -> Error {
      int result = 0;
      Error error =
          check("asking how a sum goes", [&] { return api.CommGetAsyncError(group, &result); });
      if (!error)
        error = check("a sum over devices", [&] { return result; });
      if (!error)
        error = others.checkAlive();
      if (!error)
        error = checkProgress();
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
    if (Error error = check("a sum over devices", [&] {
          return api.AllReduce(address, address, count, nccl::kFloat32, nccl::kSum, group,
                               device.stream);
        }))
      return error;
    return mark();
  }
  Error pass(ArrayRef<Passed> sent, ArrayRef<Passed> received) override {
    auto pointer = [](const Passed &each) {
      return reinterpret_cast<void *>(addressOf(*each.buffer) + each.offset);
    };
    if (Error error = check("passing values between devices", [&] {
          int result = api.GroupStart();
          for (const Passed &each : sent)
            if (!result)
              result = api.Send(pointer(each), each.count, nccl::kFloat32, each.rank, group,
                                device.stream);
          for (const Passed &each : received)
            if (!result)
              result = api.Recv(pointer(each), each.count, nccl::kFloat32, each.rank, group,
                                device.stream);
          return result ? result : api.GroupEnd();
        }))
      return error;
    return mark();
  }

private:
  static std::string seconds() { return std::to_string(longestWait.count()) + " seconds"; }

  /// Has the device remember that it has come here, behind a sum.
  Error mark() {
    progressed = CallLimit::Clock::now();
    if (pending.size() >= enoughEvents)
      if (Error error = see())
        return error;
    Event event = nullptr;
    if (!unused.empty()) {
      event = unused.back();
      unused.pop_back();
    } else if (Result result = device.api.EventCreate(&event, 0)) {
      return device.failed("making an event", result);
    }
    pending.push_back(event);
    Result result = device.api.EventRecord(event, device.stream);
    return result ? device.failed("marking a sum", result) : Error::success();
  }
  /// Which sums have ended since it was called last.
  Error see() {
    while (!pending.empty()) {
      Result result = device.api.EventQuery(pending.front());
      if (result == kNotReady)
        break;
      if (result)
        return device.ended("a sum over devices", result);
      unused.push_back(pending.front());
      pending.pop_front();
      progressed = CallLimit::Clock::now();
    }
    return Error::success();
  }
  /// The kernels between two sums take far less than the limit.
  Error checkProgress() {
    if (Error error = see())
      return error;
    if (pending.empty() || CallLimit::Clock::now() - progressed < longestWait)
      return Error::success();
    return makeError(device.target() + ": a sum over devices has not ended for " + seconds() +
                     "; another rank, or its device, hangs");
  }
  static Pointer addressOf(Device::Buffer &buffer) {
    return static_cast<GraphBuffer &>(buffer).address;
  }
  template <typename Function> Error check(const char *what, Function function) {
    const int result = limit ? limit->call(what, function) : function();
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
  static constexpr size_t enoughEvents = 32;
  std::deque<Event> pending, unused; ///< behind sums that have not been seen to end, and others
  CallLimit::Clock::time_point progressed;
  std::optional<CallLimit> limit;
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
