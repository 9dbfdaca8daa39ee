#include "lib/Runtime/GPU/Graphs/GraphDevice.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/MathExtras.h"
#include <dlfcn.h>

using namespace ctxc;
using namespace ctxc::graphs;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static std::string mebibytes(size_t bytes) {
  return std::to_string(llvm::divideCeil(bytes, size_t(1) << 20)) + " MiB";
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

Error GraphDevice::failed(StringRef what, Result result) const {
  const char *name = nullptr, *words = nullptr;
  api.GetErrorName(result, &name);
  api.GetErrorString(result, &words);
  std::string error = name ? name : "error " + std::to_string(result);
  if (words)
    error += std::string(": ") + words;
  return makeError(brand + ": " + what + " failed: " + error);
}

Error GraphDevice::ended(StringRef what, Result result) {
  fault = llvm::toString(failed(what, result));
  return makeError(fault);
}

Error GraphDevice::enter() {
  if (!fault.empty())
    return makeError(brand + ": " + label + " runs nothing more after a fault (" + fault + ")");
  if (Result result = makeCurrent())
    return failed("turning to " + label, result);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Error GraphDevice::start(void *library, StringRef file, Names names, StringRef lacking) {
  auto find = [&](const char *name) { return dlsym(library, name); };
  if (const char *name = api.lookUp(names, find))
    return makeError(brand + ": " + file + " lacks " + name + "; expected " + lacking);
  if (Result result = api.Init(0))
    return failed("starting the driver", result);
  return Error::success();
}

Expected<int> GraphDevice::count() const {
  int count = 0;
  Result result = api.DeviceGetCount(&count);
  if (result && result != kNoDevice)
    return failed("counting the devices", result);
  return result ? 0 : count;
}

Error GraphDevice::openStream() {
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

void GraphDevice::closeStream() {
  makeCurrent();
  if (stream)
    api.StreamSynchronize(stream);
  staging.close(api);
  for (Event event : {begin, end})
    if (event)
      api.EventDestroy(event);
  for (const Code &code : codes)
    api.ModuleUnload(code.module);
  if (stream)
    api.StreamDestroy(stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

GraphBuffer::~GraphBuffer() {
  if (address && owner->canFree())
    owner->api.MemFree(address);
}

size_t GraphDevice::free() const {
  size_t free = 0, total = 0;
  return makeCurrent() || api.MemGetInfo(&free, &total) ? 0 : free;
}

Expected<std::unique_ptr<Device::Buffer>> GraphDevice::allocate(size_t bytes) {
  if (Error error = enter())
    return std::move(error);
  auto made = std::make_unique<GraphBuffer>();
  made->owner = this;
  made->bytes = bytes;
  size_t size = std::max(bytes, size_t(16));
  if (Result result = api.MemAlloc(&made->address, size)) {
    made->address = 0;
    if (result == kOutOfMemory)
      return makeError(brand + ": a buffer needs " + mebibytes(size) + ", " + label + " has " +
                       mebibytes(free()) + " free");
    return failed("allocating " + mebibytes(size), result);
  }
  if (Result result = api.MemsetD8Async(made->address, 0, size, stream))
    return failed("clearing " + mebibytes(size), result);
  return made;
}

Error GraphDevice::checkRange(StringRef what, const Buffer &buffer, size_t offset,
                              size_t bytes) const {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset)
    return Error::success();
  return makeError(brand + ": " + what + " of " + std::to_string(bytes) + " bytes at " +
                   std::to_string(offset) + " exceeds a buffer of " + std::to_string(buffer.bytes));
}

Error GraphDevice::upload(Buffer &to, size_t offset, ArrayRef<char> from) {
  if (Error error = checkRange("an upload", to, offset, from.size()))
    return error;
  if (Error error = enter())
    return error;
  if (Result result =
          staging.copy(api, static_cast<GraphBuffer &>(to).address + offset, from, stream))
    return failed("uploading " + std::to_string(from.size()) + " bytes", result);
  return Error::success();
}

Error GraphDevice::download(llvm::MutableArrayRef<char> to, const Buffer &from, size_t offset) {
  if (Error error = checkRange("a download", from, offset, to.size()))
    return error;
  if (Error error = enter())
    return error;
  Pointer address = static_cast<const GraphBuffer &>(from).address + offset;
  Result result = api.MemcpyDtoHAsync(to.data(), address, to.size(), stream);
  if (!result)
    result = api.StreamSynchronize(stream);
  if (result)
    return failed("downloading " + std::to_string(to.size()) + " bytes", result);
  return Error::success();
}

Error GraphDevice::downloadAll(ArrayRef<Piece> pieces) {
  std::vector<Staging::Read> reads;
  size_t bytes = 0;
  for (const Piece &piece : pieces) {
    if (Error error = checkRange("a download", *piece.from, piece.offset, piece.to.size()))
      return error;
    reads.push_back(
        {static_cast<const GraphBuffer *>(piece.from)->address + piece.offset, piece.to});
    bytes += piece.to.size();
  }
  if (Error error = enter())
    return error;
  if (Result result = staging.read(api, reads, stream))
    return failed("downloading " + std::to_string(bytes) + " bytes", result);
  return Error::success();
}
