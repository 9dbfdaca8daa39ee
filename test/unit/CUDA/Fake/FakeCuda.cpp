#include "FakeCuda.h"
#include "Ptx.h"
#include "lib/Runtime/GPU/CUDA/CudaApi.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>

using namespace ctxc::cuda;
using namespace ctxc::graphs;

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
struct StreamObject {
  std::deque<std::function<void()>> work;
  std::unique_ptr<GraphObject> capture;
};

} // namespace ctxc::graphs

namespace {

struct State {
  fake_cuda::Options options;
  std::vector<std::string> calls, problems, kernels;
  std::map<std::string, int> counts, launched;
  bool isStarted = false;
  ContextObject context;
  std::map<uint64_t, size_t> memory, pinned; ///< address → bytes
  std::map<const void *, std::string> handles;
  size_t used = 0;
  Result fault = 0;
  double clock = 0;
};

State &state() {
  static State all;
  return all;
}
thread_local Context current = nullptr;

void problem(const std::string &what) { state().problems.push_back(what); }

/// What every call does first: 0, or what it is to return.
Result enter(const char *name, bool needsContext = true) {
  State &s = state();
  s.calls.push_back(name);
  if (++s.counts[name] == s.options.failingCall && s.options.failing == name) {
    if (s.options.result >= kIllegalAddress && s.options.result <= kLaunchFailed)
      s.fault = s.options.result;
    return s.options.result;
  }
  if (!s.isStarted && strcmp(name, "cuInit"))
    problem(std::string(name) + " before cuInit");
  if (needsContext && !current)
    problem(std::string(name) + " without a context");
  return needsContext ? s.fault : 0;
}
#define ENTER(...)                                                                                 \
  if (Result result = enter(__func__ __VA_ARGS__))                                                 \
  return result

template <typename T> T *make(const char *kind) {
  T *made = new T();
  state().handles[made] = kind;
  return made;
}
template <typename T> bool isLive(T *handle, const char *kind) {
  auto found = state().handles.find(handle);
  if (found != state().handles.end() && found->second == kind)
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
  delete handle;
  return 0;
}

bool isWithin(const std::map<uint64_t, size_t> &all, uint64_t address, uint64_t bytes) {
  auto next = all.upper_bound(address);
  if (next == all.begin())
    return false;
  auto [start, size] = *std::prev(next);
  return address + bytes <= start + size;
}
bool isDevice(uint64_t address, uint64_t bytes) { return isWithin(state().memory, address, bytes); }

/// An operation that a capture cannot hold.
Result outsideCapture(Stream stream) {
  LIVE(stream, "stream");
  if (!stream->capture)
    return 0;
  problem("work that is not captured while the stream is capturing");
  return kCaptureUnsupported;
}

void execute(const LaunchNode &launch) {
  State &s = state();
  if (s.fault)
    return;
  s.clock += 1e-3;
  s.kernels.push_back(launch.kernel->name);
  if (launch.kernel->name == s.options.faultingKernel &&
      ++s.launched[launch.kernel->name] == s.options.faultingLaunch) {
    s.fault = kIllegalAddress;
    return;
  }
  std::string error =
      ptx::run(*launch.kernel, launch.blocks, launch.threads, launch.arguments, isDevice);
  if (!error.empty()) {
    problem(error);
    s.fault = kIllegalAddress;
  }
}

void drain(Stream stream, Event until = nullptr) {
  while (!stream->work.empty() && !(until && until->isDone)) {
    auto work = std::move(stream->work.front());
    stream->work.pop_front();
    work();
  }
}

template <typename Map> void freeAll(Map &map) {
  for (auto [address, bytes] : map)
    std::free(reinterpret_cast<void *>(address));
  map.clear();
}

} // namespace

//===----------------------------------------------------------------------===//
// What tests ask
//===----------------------------------------------------------------------===//

void fake_cuda::reset() {
  State &s = state();
  freeAll(s.memory);
  freeAll(s.pinned);
  s = State();
  current = nullptr;
}
fake_cuda::Options &fake_cuda::options() { return state().options; }
const std::vector<std::string> &fake_cuda::calls() { return state().calls; }
int fake_cuda::countOf(const std::string &function) { return state().counts[function]; }
const std::vector<std::string> &fake_cuda::problems() { return state().problems; }
const std::vector<std::string> &fake_cuda::kernels() { return state().kernels; }
std::vector<std::string> fake_cuda::alive() {
  State &s = state();
  std::vector<std::string> all;
  if (s.context.retained)
    all.push_back("context");
  for (auto &handle : s.handles)
    all.push_back(handle.second);
  all.insert(all.end(), s.memory.size(), "memory");
  all.insert(all.end(), s.pinned.size(), "pinned memory");
  return all;
}

//===----------------------------------------------------------------------===//
// The driver's functions
//===----------------------------------------------------------------------===//

extern "C" {

Result cuInit(unsigned flags) {
  ENTER(, false);
  state().isStarted = true;
  return flags ? kInvalidValue : 0;
}
Result cuGetErrorName(Result result, const char **name) {
  switch (result) {
  case kOutOfMemory:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  case kNoDevice:
    *name = "CUDA_ERROR_NO_DEVICE";
    return 0;
  case kInvalidCode:
    *name = "CUDA_ERROR_INVALID_PTX";
    return 0;
  case kNotFound:
    *name = "CUDA_ERROR_NOT_FOUND";
    return 0;
  case kIllegalAddress:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
  case kLaunchFailed:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    return 0;
  }
  *name = nullptr;
  return kInvalidValue;
}
Result cuGetErrorString(Result result, const char **words) {
  *words = result == kIllegalAddress ? "an illegal memory access was encountered" : nullptr;
  return *words ? 0 : kInvalidValue;
}

Result cuDeviceGetCount(int *count) {
  ENTER(, false);
  *count = state().options.devices.size();
  return 0;
}
Result cuDeviceGet(Ordinal *device, int ordinal) {
  ENTER(, false);
  *device = ordinal;
  return size_t(ordinal) < state().options.devices.size() ? 0 : kNoDevice;
}
Result cuDeviceGetName(char *name, int bytes, Ordinal device) {
  ENTER(, false);
  snprintf(name, bytes, "Fake %d", device);
  return 0;
}
Result cuDeviceGetAttribute(int *value, Attribute attribute, Ordinal device) {
  ENTER(, false);
  int capability = state().options.devices.at(device);
  *value = attribute == kMajor ? capability / 10 : attribute == kMinor ? capability % 10 : -1;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context *context, Ordinal) {
  ENTER(, false);
  ++state().context.retained;
  *context = &state().context;
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(Ordinal) {
  ENTER(, false);
  State &s = state();
  if (--s.context.retained)
    return 0;
  // What is in a context goes with it; after a fault nothing else frees it.
  if (s.fault) {
    freeAll(s.memory);
    freeAll(s.pinned);
    s.handles.clear();
  }
  return 0;
}
Result cuCtxSetCurrent(Context context) {
  ENTER(, false);
  current = context;
  return 0;
}

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count, JitOption *options,
                          void **values) {
  auto log = [&](const std::string &text) {
    char *to = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kErrorLog)
        to = static_cast<char *>(values[i]);
      else
        bytes = reinterpret_cast<size_t>(values[i]);
    if (to)
      snprintf(to, bytes, "%s", text.c_str());
  };
  if (Result result = enter(__func__)) {
    log(state().options.compilerLog);
    return result;
  }
  auto made = std::make_unique<ModuleObject>();
  std::string error;
  if (!ptx::parse(static_cast<const char *>(image), made->code, error)) {
    log("ptxas: " + error);
    return kInvalidCode;
  }
  if (std::atoi(made->code.target.c_str() + 3) > state().options.devices[0])
    return 209; // no binary for the device
  *module = made.release();
  state().handles[*module] = "module";
  return 0;
}
Result cuModuleUnload(Module module) {
  ENTER();
  return destroy(module, "module");
}
Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  ENTER();
  LIVE(module, "module");
  auto found = module->code.kernels.find(name);
  if (found == module->code.kernels.end())
    return kNotFound;
  auto &made = module->functions[name];
  if (!made)
    made.reset(new FunctionObject{&found->second});
  *function = made.get();
  return 0;
}
Result cuFuncGetAttribute(int *value, FunctionAttribute attribute, Function function) {
  ENTER();
  *value = std::min(function->kernel->mostThreads, state().options.mostThreads);
  return attribute == kMaxThreadsPerBlock ? 0 : kInvalidValue;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER();
  *total = state().options.memory;
  *free = *total - state().used;
  return 0;
}
Result cuMemAlloc_v2(Pointer *pointer, size_t bytes) {
  ENTER();
  State &s = state();
  if (!bytes)
    return kInvalidValue;
  if (s.used + bytes > s.options.memory)
    return kOutOfMemory;
  void *made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(made, 0xff, bytes); // it is not zero by itself
  *pointer = reinterpret_cast<uint64_t>(made);
  s.memory[*pointer] = bytes;
  s.used += bytes;
  return 0;
}
Result cuMemFree_v2(Pointer pointer) {
  ENTER();
  State &s = state();
  auto found = s.memory.find(pointer);
  if (found == s.memory.end()) {
    problem("freeing what is no memory");
    return kInvalidValue;
  }
  for (auto &handle : s.handles) // the driver waits before it frees
    if (handle.second == "stream")
      drain(static_cast<Stream>(const_cast<void *>(handle.first)));
  s.used -= found->second;
  s.memory.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return 0;
}
Result cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  ENTER();
  if (flags)
    return kInvalidValue;
  *pointer = std::malloc(bytes);
  state().pinned[reinterpret_cast<uint64_t>(*pointer)] = bytes;
  return 0;
}
Result cuMemFreeHost(void *pointer) {
  ENTER();
  if (!state().pinned.erase(reinterpret_cast<uint64_t>(pointer))) {
    problem("freeing what is no pinned memory");
    return kInvalidValue;
  }
  std::free(pointer);
  return 0;
}

Result cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t bytes, Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  if (!isDevice(to, bytes) || !isWithin(state().pinned, uint64_t(from), bytes)) {
    problem("a copy to the device between memory that is not there");
    return kInvalidValue;
  }
  stream->work.push_back([=] { memcpy(reinterpret_cast<void *>(to), from, bytes); });
  return 0;
}
Result cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t bytes, Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  if (!isDevice(from, bytes)) {
    problem("a copy from memory that is not there");
    return kInvalidValue;
  }
  stream->work.push_back([=] { memcpy(to, reinterpret_cast<void *>(from), bytes); });
  return 0;
}
Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  if (!isDevice(to, bytes) || !isDevice(from, bytes)) {
    problem("a copy between memory that is not there");
    return kInvalidValue;
  }
  stream->work.push_back([=] {
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    state().clock += 1e-3;
  });
  return 0;
}
Result cuMemsetD8Async(Pointer to, unsigned char byte, size_t bytes, Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  if (!isDevice(to, bytes)) {
    problem("clearing memory that is not there");
    return kInvalidValue;
  }
  stream->work.push_back([=] { memset(reinterpret_cast<void *>(to), byte, bytes); });
  return 0;
}

Result cuStreamCreate(Stream *stream, unsigned flags) {
  ENTER();
  *stream = make<StreamObject>("stream");
  return flags == kNonBlocking ? 0 : kInvalidValue;
}
Result cuStreamDestroy_v2(Stream stream) {
  ENTER();
  LIVE(stream, "stream");
  drain(stream);
  return destroy(stream, "stream");
}
Result cuStreamSynchronize(Stream stream) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  drain(stream);
  return state().fault;
}
Result cuStreamBeginCapture_v2(Stream stream, unsigned) {
  ENTER();
  if (Result result = outsideCapture(stream))
    return result;
  stream->capture = std::make_unique<GraphObject>();
  return 0;
}
Result cuStreamEndCapture(Stream stream, Graph *graph) {
  LIVE(stream, "stream");
  std::unique_ptr<GraphObject> captured = std::move(stream->capture);
  ENTER();
  if (!captured)
    return kNotPermitted;
  *graph = captured.release();
  state().handles[*graph] = "graph";
  return 0;
}
Result cuLaunchKernel(Function function, unsigned blocks, unsigned blocksY, unsigned blocksZ,
                      unsigned threads, unsigned threadsY, unsigned threadsZ, unsigned sharedBytes,
                      Stream stream, void **arguments, void **extra) {
  ENTER();
  LIVE(stream, "stream");
  LaunchNode node{function->kernel, blocks, threads, {}};
  if (!blocks || !threads || threads > function->kernel->mostThreads || blocksY != 1 ||
      blocksZ != 1 || threadsY != 1 || threadsZ != 1 || sharedBytes || extra) {
    problem("a launch of an impossible shape");
    return kInvalidValue;
  }
  for (size_t i = 0; i < function->kernel->parameters.size(); ++i) {
    uint64_t argument = *static_cast<uint64_t *>(arguments[i]);
    if (!state().memory.count(argument)) {
      problem("argument " + std::to_string(i) + " of " + function->kernel->name + " is no memory");
      return kInvalidValue;
    }
    node.arguments.push_back(argument);
  }
  if (stream->capture)
    stream->capture->launches.push_back(std::move(node));
  else
    stream->work.push_back([=] { execute(node); });
  return 0;
}

Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long flags) {
  ENTER();
  LIVE(graph, "graph");
  *exec = make<GraphExecObject>("graph to launch");
  (*exec)->launches = graph->launches;
  return flags ? kInvalidValue : 0;
}
Result cuGraphLaunch(GraphExec exec, Stream stream) {
  ENTER();
  LIVE(exec, "graph to launch");
  if (Result result = outsideCapture(stream))
    return result;
  for (const LaunchNode &node : exec->launches)
    stream->work.push_back([node] { execute(node); });
  return 0;
}
Result cuGraphDestroy(Graph graph) {
  ENTER();
  return destroy(graph, "graph");
}
Result cuGraphExecDestroy(GraphExec exec) {
  ENTER();
  return destroy(exec, "graph to launch");
}

Result cuEventCreate(Event *event, unsigned flags) {
  ENTER();
  *event = make<EventObject>("event");
  return flags ? kInvalidValue : 0;
}
Result cuEventDestroy_v2(Event event) {
  ENTER();
  return destroy(event, "event");
}
Result cuEventRecord(Event event, Stream stream) {
  ENTER();
  LIVE(event, "event");
  if (Result result = outsideCapture(stream))
    return result;
  event->isRecorded = true;
  event->isDone = false;
  stream->work.push_back([=] {
    event->isDone = true;
    event->time = state().clock;
  });
  return 0;
}
Result cuEventSynchronize(Event event) {
  ENTER();
  LIVE(event, "event");
  for (auto &handle : state().handles)
    if (handle.second == "stream" && !event->isDone)
      drain(static_cast<Stream>(const_cast<void *>(handle.first)), event);
  return state().fault;
}
Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER();
  for (Event event : {begin, end}) {
    LIVE(event, "event");
    if (!event->isRecorded)
      return kInvalidHandle;
    if (!event->isDone)
      return kNotReady;
  }
  *milliseconds = 1e3 * (end->time - begin->time);
  return 0;
}

} // extern "C"
