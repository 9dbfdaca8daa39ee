#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Devices.h"
#include "llvm/Support/MathExtras.h"
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::cuda;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// What code is made for (GpuTarget::named), newest first. PTX runs on what is newer, too.
constexpr int architectures[] = {90, 80};

std::string mebibytes(size_t bytes) {
  return std::to_string(llvm::divideCeil(bytes, size_t(1) << 20)) + " MiB";
}

} // namespace

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

Error CudaDevice::failed(StringRef what, Result result) const {
  const char *name = nullptr, *words = nullptr;
  api.GetErrorName(result, &name);
  api.GetErrorString(result, &words);
  std::string error = name ? name : "error " + std::to_string(result);
  if (words)
    error += std::string(": ") + words;
  return makeError("cuda: " + what + " failed: " + error);
}

Error CudaDevice::ended(StringRef what, Result result) {
  fault = llvm::toString(failed(what, result));
  return makeError(fault);
}

Error CudaDevice::enter() {
  if (!fault.empty())
    return makeError("cuda: " + label + " runs nothing more after a fault (" + fault + ")");
  if (Result result = api.CtxSetCurrent(context))
    return failed("turning to " + label, result);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<CudaDevice>> CudaDevice::open(int architecture, bool isChecked) {
  auto library = openDriver("libcuda.so.1", "cuda: there is no driver of NVIDIA's");
  if (!library)
    return library.takeError();
  auto made = std::make_unique<CudaDevice>();
  if (const char *lacking =
          made->api.lookUp([&](const char *name) { return dlsym(*library, name); }))
    return makeError(llvm::Twine("cuda: libcuda.so.1 lacks ") + lacking +
                     "; expected a driver of CUDA 11.8 or later");
  if (Result result = made->api.Init(0))
    return made->failed("starting the driver", result);
  made->isChecked = isChecked;
  if (Error error = made->choose(architecture))
    return std::move(error);
  if (Error error = made->openContext())
    return std::move(error);
  return made;
}

/// The first device that runs code for `wanted` (0: for any target).
Error CudaDevice::choose(int wanted) {
  int count = 0;
  if (Result result = api.DeviceGetCount(&count))
    return failed("counting the devices", result);
  std::string found;
  for (int i = 0; i < count; ++i) {
    char text[256] = {};
    int major = 0, minor = 0;
    Result result = api.DeviceGet(&device, i);
    if (!result)
      result = api.DeviceGetName(text, sizeof text - 1, device);
    if (!result)
      result = api.DeviceGetAttribute(&major, kMajor, device);
    if (!result)
      result = api.DeviceGetAttribute(&minor, kMinor, device);
    if (result)
      return failed("asking device " + std::to_string(i) + " what it is", result);
    int has = 10 * major + minor;
    for (int candidate : architectures)
      if (candidate <= has && (!wanted || wanted == candidate)) {
        label = text;
        architecture = candidate;
        return Error::success();
      }
    found +=
        (found.empty() ? "" : " and ") + std::string(text) + " (sm_" + std::to_string(has) + ")";
  }
  if (!count)
    return makeError("cuda: the driver shows no device");
  int least = wanted ? wanted : architectures[std::size(architectures) - 1];
  return makeError("cuda: found " + found + ", expected a device of sm_" + std::to_string(least) +
                   " or later");
}

Error CudaDevice::openContext() {
  if (Result result = api.PrimaryCtxRetain(&context, device))
    return failed("opening " + label, result);
  if (Error error = enter())
    return error;
  Result result = api.StreamCreate(&stream, kNonBlocking);
  for (Event *event : {&begin, &end})
    if (!result)
      result = api.EventCreate(event, 0);
  if (result)
    return failed("making a stream on " + label, result);
  if (Result result = staging.open(api))
    return failed("pinning " + mebibytes(2 * Staging::kHalfBytes) + " for uploads", result);
  return Error::success();
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  api.CtxSetCurrent(context);
  if (stream)
    api.StreamSynchronize(stream);
  staging.close(api);
  for (Event event : {begin, end})
    if (event)
      api.EventDestroy(event);
  if (code)
    api.ModuleUnload(code);
  if (stream)
    api.StreamDestroy(stream);
  api.CtxSetCurrent(nullptr);
  api.PrimaryCtxRelease(device);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CudaBuffer::~CudaBuffer() {
  if (address && owner->canFree())
    owner->api.MemFree(address);
}

size_t CudaDevice::free() const {
  size_t free = 0, total = 0;
  api.CtxSetCurrent(context);
  return api.MemGetInfo(&free, &total) ? 0 : free;
}

Expected<std::unique_ptr<ctxc::Device::Buffer>> CudaDevice::allocate(size_t bytes) {
  if (Error error = enter())
    return std::move(error);
  auto made = std::make_unique<CudaBuffer>();
  made->owner = this;
  made->bytes = bytes;
  size_t size = std::max(bytes, size_t(16));
  if (Result result = api.MemAlloc(&made->address, size)) {
    made->address = 0;
    if (result == kOutOfMemory)
      return makeError("cuda: a buffer needs " + mebibytes(size) + ", " + label + " has " +
                       mebibytes(free()) + " free");
    return failed("allocating " + mebibytes(size), result);
  }
  if (Result result = api.MemsetD8Async(made->address, 0, size, stream))
    return failed("clearing " + mebibytes(size), result);
  return made;
}

static Error checkRange(StringRef what, const ctxc::Device::Buffer &buffer, size_t offset,
                        size_t bytes) {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset)
    return Error::success();
  return makeError("cuda: " + what + " of " + std::to_string(bytes) + " bytes at " +
                   std::to_string(offset) + " exceeds a buffer of " + std::to_string(buffer.bytes));
}

Error CudaDevice::upload(Buffer &to, size_t offset, ArrayRef<char> from) {
  if (Error error = checkRange("an upload", to, offset, from.size()))
    return error;
  if (Error error = enter())
    return error;
  if (Result result =
          staging.copy(api, static_cast<CudaBuffer &>(to).address + offset, from, stream))
    return failed("uploading " + std::to_string(from.size()) + " bytes", result);
  return Error::success();
}

Error CudaDevice::download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) {
  if (Error error = checkRange("a download", from, offset, to.size()))
    return error;
  if (Error error = enter())
    return error;
  Pointer address = static_cast<const CudaBuffer &>(from).address + offset;
  Result result = api.MemcpyDtoHAsync(to.data(), address, to.size(), stream);
  if (!result)
    result = api.StreamSynchronize(stream);
  if (result)
    return failed("downloading " + std::to_string(to.size()) + " bytes", result);
  return Error::success();
}
