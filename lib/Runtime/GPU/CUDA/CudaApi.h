// The functions of NVIDIA's driver that are called, declared here and looked up in its library:
// those that drivers of CUDA 11.8 to 13 have, by the names of their versions.
#ifndef CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
#define CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H

#include <cstddef>
#include <cstdint>

namespace ctxc::cuda {

using Result = int; ///< 0: success
using Device = int;
using Pointer = uint64_t; ///< of the device's memory
using Context = struct ContextObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;

enum : Result {
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidPtx = 218,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidProgramCounter = 718,
  kLaunchFailed = 719,
};

/// Of a device.
enum Attribute : int { kMajor = 75, kMinor = 76 };
/// Of a function.
enum FunctionAttribute : int { kMaxThreadsPerBlock = 0 };
/// Of loading code.
enum JitOption : int { kErrorLog = 5, kErrorLogBytes = 6 };

constexpr unsigned kNonBlocking = 1;        ///< a stream that waits for no other
constexpr unsigned kCaptureThreadLocal = 1; ///< what other threads do does not end a capture

/// F(field, name in the library, parameters)
#define CTXC_CUDA_FUNCTIONS(F)                                                                     \
  F(Init, "cuInit", (unsigned flags))                                                              \
  F(DriverGetVersion, "cuDriverGetVersion", (int *version))                                        \
  F(GetErrorName, "cuGetErrorName", (Result, const char **))                                       \
  F(GetErrorString, "cuGetErrorString", (Result, const char **))                                   \
  F(DeviceGetCount, "cuDeviceGetCount", (int *count))                                              \
  F(DeviceGet, "cuDeviceGet", (Device *, int ordinal))                                             \
  F(DeviceGetName, "cuDeviceGetName", (char *name, int bytes, Device))                             \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, Attribute, Device))                   \
  F(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context *, Device))                             \
  F(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (Device))                                   \
  F(CtxSetCurrent, "cuCtxSetCurrent", (Context))                                                   \
  F(ModuleLoadDataEx, "cuModuleLoadDataEx",                                                        \
    (Module *, const void *image, unsigned options, JitOption *, void **values))                   \
  F(ModuleUnload, "cuModuleUnload", (Module))                                                      \
  F(ModuleGetFunction, "cuModuleGetFunction", (Function *, Module, const char *name))              \
  F(FuncGetAttribute, "cuFuncGetAttribute", (int *value, FunctionAttribute, Function))             \
  F(MemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                  \
  F(MemAlloc, "cuMemAlloc_v2", (Pointer *, size_t bytes))                                          \
  F(MemFree, "cuMemFree_v2", (Pointer))                                                            \
  F(MemAllocHost, "cuMemAllocHost_v2", (void **, size_t bytes))                                    \
  F(MemFreeHost, "cuMemFreeHost", (void *))                                                        \
  F(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (Pointer, const void *, size_t bytes, Stream))        \
  F(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, Pointer, size_t bytes, Stream))              \
  F(MemsetD8Async, "cuMemsetD8Async", (Pointer, unsigned char, size_t bytes, Stream))              \
  F(StreamCreate, "cuStreamCreate", (Stream *, unsigned flags))                                    \
  F(StreamDestroy, "cuStreamDestroy_v2", (Stream))                                                 \
  F(StreamSynchronize, "cuStreamSynchronize", (Stream))                                            \
  F(StreamBeginCapture, "cuStreamBeginCapture_v2", (Stream, unsigned mode))                        \
  F(StreamEndCapture, "cuStreamEndCapture", (Stream, Graph *))                                     \
  F(LaunchKernel, "cuLaunchKernel",                                                                \
    (Function, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX,            \
     unsigned threadsY, unsigned threadsZ, unsigned sharedBytes, Stream, void **arguments,         \
     void **extra))                                                                                \
  F(GraphInstantiate, "cuGraphInstantiateWithFlags",                                               \
    (GraphExec *, Graph, unsigned long long flags))                                                \
  F(GraphLaunch, "cuGraphLaunch", (GraphExec, Stream))                                             \
  F(GraphDestroy, "cuGraphDestroy", (Graph))                                                       \
  F(GraphExecDestroy, "cuGraphExecDestroy", (GraphExec))                                           \
  F(EventCreate, "cuEventCreate", (Event *, unsigned flags))                                       \
  F(EventDestroy, "cuEventDestroy_v2", (Event))                                                    \
  F(EventRecord, "cuEventRecord", (Event, Stream))                                                 \
  F(EventSynchronize, "cuEventSynchronize", (Event))                                               \
  F(EventElapsedTime, "cuEventElapsedTime", (float *milliseconds, Event, Event))

struct Api {
#define CTXC_FIELD(FIELD, NAME, PARAMETERS) Result(*FIELD) PARAMETERS = nullptr;
  CTXC_CUDA_FUNCTIONS(CTXC_FIELD)
#undef CTXC_FIELD

  /// The name of a function that the library lacks; null where all are there. `find` is dlsym.
  template <typename Find> const char *lookUp(Find find) {
#define CTXC_LOOK_UP(FIELD, NAME, PARAMETERS)                                                      \
  FIELD = reinterpret_cast<Result(*) PARAMETERS>(find(NAME));                                      \
  if (!FIELD)                                                                                      \
    return NAME;
    CTXC_CUDA_FUNCTIONS(CTXC_LOOK_UP)
#undef CTXC_LOOK_UP
    return nullptr;
  }
};

} // namespace ctxc::cuda

#endif // CTXC_LIB_RUNTIME_GPU_CUDA_CUDAAPI_H
