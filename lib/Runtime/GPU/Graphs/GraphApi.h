// The functions that NVIDIA's driver and AMD's HIP have in common, declared here and looked up in
// their libraries: those that drivers of CUDA 11.8 to 13 and of ROCm 6 to 7 have, by the names of
// their versions.
#ifndef CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHAPI_H
#define CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHAPI_H

#include <cstddef>
#include <cstdint>

namespace ctxc::graphs {

using Result = int; ///< 0: success
using Ordinal = int;
using Pointer = uint64_t; ///< of the device's memory
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;

/// The same numbers in both.
enum : Result {
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidCode = 218,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
};

/// Attributes of a function.
enum FunctionAttribute : int { kMaxThreadsPerBlock = 0 };
/// Options of loading code.
enum JitOption : int { kErrorLog = 5, kErrorLogBytes = 6 };

constexpr unsigned kNonBlocking = 1;        ///< a CUDA stream that waits for no other
constexpr unsigned kCaptureThreadLocal = 1; ///< calls of other threads do not end a capture

/// One side of a copy of a matrix, and the copy. A pitch is the bytes from a row to the next.
struct Side2D {
  size_t xInBytes = 0, y = 0;
  int memoryType = 2; ///< the device's
  const void *host = nullptr;
  Pointer device = 0;
  void *array = nullptr;
  size_t pitch = 0;
};
struct Copy2D {
  Side2D from, to;
  size_t widthInBytes = 0, height = 0;
};

/// F(field, name in libcuda, name in libamdhip64, parameters)
#define CTXC_GRAPH_FUNCTIONS(F)                                                                    \
  F(Init, cuInit, hipInit, (unsigned flags))                                                       \
  F(GetErrorName, cuGetErrorName, hipDrvGetErrorName, (Result, const char **))                     \
  F(GetErrorString, cuGetErrorString, hipDrvGetErrorString, (Result, const char **))               \
  F(DeviceGetCount, cuDeviceGetCount, hipGetDeviceCount, (int *count))                             \
  F(DeviceGet, cuDeviceGet, hipDeviceGet, (Ordinal *, int ordinal))                                \
  F(DeviceGetName, cuDeviceGetName, hipDeviceGetName, (char *name, int bytes, Ordinal))            \
  F(ModuleLoadDataEx, cuModuleLoadDataEx, hipModuleLoadDataEx,                                     \
    (Module *, const void *image, unsigned options, JitOption *, void **values))                   \
  F(ModuleUnload, cuModuleUnload, hipModuleUnload, (Module))                                       \
  F(ModuleGetFunction, cuModuleGetFunction, hipModuleGetFunction,                                  \
    (Function *, Module, const char *name))                                                        \
  F(FuncGetAttribute, cuFuncGetAttribute, hipFuncGetAttribute,                                     \
    (int *value, FunctionAttribute, Function))                                                     \
  F(MemGetInfo, cuMemGetInfo_v2, hipMemGetInfo, (size_t *free, size_t *total))                     \
  F(MemAlloc, cuMemAlloc_v2, hipMalloc, (Pointer *, size_t bytes))                                 \
  F(MemFree, cuMemFree_v2, hipFree, (Pointer))                                                     \
  F(MemAllocHost, cuMemHostAlloc, hipHostMalloc, (void **, size_t bytes, unsigned flags))          \
  F(MemFreeHost, cuMemFreeHost, hipHostFree, (void *))                                             \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                     \
    (Pointer, const void *, size_t bytes, Stream))                                                 \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,                                     \
    (void *, Pointer, size_t bytes, Stream))                                                       \
  F(Memcpy2DAsync, cuMemcpy2DAsync_v2, hipMemcpyParam2DAsync, (const Copy2D *, Stream))            \
  F(MemsetD8Async, cuMemsetD8Async, hipMemsetD8Async,                                              \
    (Pointer, unsigned char, size_t bytes, Stream))                                                \
  F(StreamCreate, cuStreamCreate, hipStreamCreateWithFlags, (Stream *, unsigned flags))            \
  F(StreamDestroy, cuStreamDestroy_v2, hipStreamDestroy, (Stream))                                 \
  F(StreamSynchronize, cuStreamSynchronize, hipStreamSynchronize, (Stream))                        \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, hipStreamBeginCapture, (Stream, unsigned mode))   \
  F(StreamEndCapture, cuStreamEndCapture, hipStreamEndCapture, (Stream, Graph *))                  \
  F(LaunchKernel, cuLaunchKernel, hipModuleLaunchKernel,                                           \
    (Function, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX,            \
     unsigned threadsY, unsigned threadsZ, unsigned sharedBytes, Stream, void **arguments,         \
     void **extra))                                                                                \
  F(GraphInstantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                   \
    (GraphExec *, Graph, unsigned long long flags))                                                \
  F(GraphLaunch, cuGraphLaunch, hipGraphLaunch, (GraphExec, Stream))                               \
  F(GraphDestroy, cuGraphDestroy, hipGraphDestroy, (Graph))                                        \
  F(GraphExecDestroy, cuGraphExecDestroy, hipGraphExecDestroy, (GraphExec))                        \
  F(EventCreate, cuEventCreate, hipEventCreateWithFlags, (Event *, unsigned flags))                \
  F(EventDestroy, cuEventDestroy_v2, hipEventDestroy, (Event))                                     \
  F(EventRecord, cuEventRecord, hipEventRecord, (Event, Stream))                                   \
  F(EventSynchronize, cuEventSynchronize, hipEventSynchronize, (Event))                            \
  F(EventQuery, cuEventQuery, hipEventQuery, (Event))                                              \
  F(EventElapsedTime, cuEventElapsedTime, hipEventElapsedTime, (float *milliseconds, Event, Event))

/// How a driver names the functions.
enum class Names { Cuda, Hip };

struct Api {
#define CTXC_FIELD(FIELD, CUDA, HIP, PARAMETERS) Result(*FIELD) PARAMETERS = nullptr;
  CTXC_GRAPH_FUNCTIONS(CTXC_FIELD)
#undef CTXC_FIELD

  /// The name of a function that the library lacks; null where all are there. `find` is dlsym.
  template <typename Find> const char *lookUp(Names names, Find find) {
    const char *name = nullptr;
#define CTXC_LOOK_UP(FIELD, CUDA, HIP, PARAMETERS)                                                 \
  name = names == Names::Cuda ? #CUDA : #HIP;                                                      \
  FIELD = reinterpret_cast<Result(*) PARAMETERS>(find(name));                                      \
  if (!FIELD)                                                                                      \
    return name;
    CTXC_GRAPH_FUNCTIONS(CTXC_LOOK_UP)
#undef CTXC_LOOK_UP
    return nullptr;
  }
};

} // namespace ctxc::graphs

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_GRAPHAPI_H
