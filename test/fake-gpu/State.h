// The state of the fake drivers, and the checks with which each of their functions begins: live
// handles, allocated memory, work that streams have been given and have not done.
#ifndef CTXC_TEST_FAKE_GPU_STATE_H
#define CTXC_TEST_FAKE_GPU_STATE_H

#include "FakeGpu.h"
#include "Ptx.h"
#include "lib/Runtime/GPU/CUDA/CudaApi.h"
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>

struct ctxc::cuda::ContextObject {
  int retained = 0;
};

namespace ctxc::graphs {

struct ModuleObject {
  ptx::Module code;
  std::map<std::string, std::unique_ptr<FunctionObject>> functions;
};
struct FunctionObject {
  const ptx::Kernel *kernel;
};
struct LaunchNode {
  const ptx::Kernel *kernel;
  unsigned blocks, threads;
  std::vector<uint64_t> arguments;
};
struct GraphObject {
  std::vector<LaunchNode> launches;
};
struct GraphExecObject {
  std::vector<LaunchNode> launches;
};
struct EventObject {
  bool isRecorded = false, isDone = true;
  double time = 0;
};
/// Something that a stream does: all at once, or step by step where it waits for other processes,
/// until a step returns true.
struct Work {
  template <typename Function> Work(Function function) {
    if constexpr (std::is_void_v<decltype(function())>)
      step = [function]() mutable {
        function();
        return true;
      };
    else
      step = function;
  }
  std::function<bool()> step;
};
struct StreamObject {
  std::deque<Work> work;
  std::unique_ptr<GraphObject> capture;
};

} // namespace ctxc::graphs

namespace fake_gpu {

using namespace ctxc::cuda;
using namespace ctxc::graphs;

/// What the program has a handle of, until it destroys it.
struct Handle {
  std::string kind;
  std::shared_ptr<void> object;
};

struct State {
  fake_gpu::Options options;
  std::vector<std::string> calls, problems, kernels;
  std::map<std::string, int> counts, launched;
  bool isStarted = false;
  ContextObject context;
  std::map<uint64_t, size_t> memory, pinned; ///< address → size in bytes
  std::map<const void *, Handle> handles;
  size_t used = 0;
  Result fault = 0;
  double clock = 0;
};

State &state();
extern thread_local Context current;

void problem(const std::string &what);

/// The first step of every call. Returns 0, or the result that the call must return.
Result enter(const char *name, bool needsContext = true);
#define ENTER(...)                                                                                 \
  if (Result result = enter(__func__ __VA_ARGS__))                                                 \
  return result

/// Gives the program a handle of `object`.
template <typename T> T *give(std::shared_ptr<T> object, const char *kind) {
  T *handle = object.get();
  state().handles[handle] = {kind, std::move(object)};
  return handle;
}
template <typename T> T *make(const char *kind) { return give(std::make_shared<T>(), kind); }
template <typename T> bool isLive(T *handle, const char *kind) {
  auto found = state().handles.find(handle);
  if (found != state().handles.end() && found->second.kind == kind)
    return true;
  problem(std::string("a dead or unknown ") + kind);
  return false;
}
constexpr Result kInvalidValue = 1, kInvalidHandle = 400, kNotPermitted = 800,
                 kCaptureUnsupported = 900;
#define LIVE(HANDLE, KIND)                                                                         \
  if (!isLive(HANDLE, KIND))                                                                       \
  return kInvalidHandle

template <typename T> Result destroy(T *handle, const char *kind) {
  LIVE(handle, kind);
  state().handles.erase(handle);
  return 0;
}

/// The last allocation that begins at or before an address.
ptx::Range rangeOf(const std::map<uint64_t, size_t> &all, uint64_t address);
inline bool isWithin(const std::map<uint64_t, size_t> &all, uint64_t address, uint64_t bytes) {
  return rangeOf(all, address).holds(address, bytes);
}
inline bool isDevice(uint64_t address, uint64_t bytes) {
  return isWithin(state().memory, address, bytes);
}

/// Checks for an operation that cannot be captured into a graph.
Result outsideCapture(Stream stream);

void execute(const LaunchNode &launch);
/// Does the stream's pending work, at most until `until` has happened. Waits for other processes,
/// unless `waits` is false.
void drain(Stream stream, Event until = nullptr, bool waits = true);

template <typename Map> void freeAll(Map &map) {
  for (auto [address, bytes] : map)
    std::free(reinterpret_cast<void *>(address));
  map.clear();
}

} // namespace fake_gpu

#endif // CTXC_TEST_FAKE_GPU_STATE_H
