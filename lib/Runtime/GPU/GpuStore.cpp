#include "lib/Runtime/GPU/GpuStore.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/DeviceBlocks.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

size_t ctxc::argumentBytes(Type type) {
  return elementsOf(type) * cast<MemRefType>(type).getElementTypeBitWidth() / 8;
}

Expected<uint32_t> GpuStore::load(StringRef code) {
  if (Error error = device->load(code))
    return std::move(error);
  return loads++;
}

Expected<Device::Buffer *> GpuStore::own(BufferPtr &buffer, size_t bytes) {
  if (!buffer) {
    auto made = device->allocate(bytes);
    if (!made)
      return made.takeError();
    buffer = std::move(*made);
  }
  return buffer.get();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// A tensor's name and how it is stored.
static std::string weightKey(StringRef name, Type type) {
  std::string key = (name + " ").str();
  llvm::raw_string_ostream(key) << type;
  return key;
}

Error GpuStore::uploadWeights(ArrayRef<std::pair<size_t, KernelArg>> arguments) {
  llvm::StringMap<size_t> sizes;
  size_t total = 0;
  for (const auto &[step, arg] : arguments) {
    xf::LayerOp layer = program.steps[step].layer;
    if (sizes.try_emplace(weightKey(layer.getStoredName(arg.name), arg.type), 0).second)
      total += argumentBytes(arg.type);
  }
  constexpr size_t mebi = size_t(1) << 20;
  if (size_t has = device->memory(); total > has)
    return makeError(device->target() + ": the weights need " +
                     std::to_string(llvm::divideCeil(total, mebi)) + " MiB of memory; " +
                     device->name() + " has " + std::to_string(has / mebi) + " MiB");
  for (const auto &[step, arg] : arguments)
    if (Error error = weight(step, arg).takeError())
      return error;
  return Error::success();
}

Expected<Device::Buffer *> GpuStore::weight(size_t i, const KernelArg &arg) {
  ProgramStep step = program.steps[i];
  std::string name = step.layer.getStoredName(arg.name);
  BufferPtr &buffer = weightBuffers[weightKey(name, arg.type)];
  if (buffer)
    return buffer.get();
  if (arg.kind == KernelArgKind::Bank)
    return bank(buffer, name, arg);
  auto type = cast<MemRefType>(arg.type);
  auto data =
      weights.get(name, arg.stored ? arg.stored
                                   : RankedTensorType::get(type.getShape(), type.getElementType()));
  if (!data)
    return data.takeError();
  // Kernels read the bytes of quantised matrices in words of 32 bits.
  auto made = own(buffer, llvm::alignTo(argumentBytes(type), 4));
  if (!made)
    return made;
  if (arg.stored && hasScalesApart(storageOf(arg.stored.getElementType()))) {
    if (Error error = uploadBlocks(*device, **made, 0, name, arg.stored, *data))
      return std::move(error);
    return buffer.get();
  }
  if (Error error =
          device->upload(**made, 0, {static_cast<const char *>(*data), argumentBytes(type)}))
    return std::move(error);
  return buffer.get();
}

/// All slices, one after the other.
Expected<Device::Buffer *> GpuStore::bank(BufferPtr &buffer, StringRef name, const KernelArg &arg) {
  size_t bytes = argumentBytes(arg.type), count = arg.stored.getDimSize(0), each = bytes / count;
  auto made = own(buffer, llvm::alignTo(bytes, 4)); // quantised ones are read in words of 32 bits
  for (size_t i = 0; made && i < count; ++i) {
    auto slice = getSlice(weights, name, arg.stored, i);
    if (!slice)
      return slice.takeError();
    if (hasScalesApart(storageOf(arg.stored.getElementType()))) {
      auto of =
          RankedTensorType::get(arg.stored.getShape().drop_front(), arg.stored.getElementType());
      if (Error error = uploadBlocks(*device, **made, i * each, name, of, *slice))
        return std::move(error);
      continue;
    }
    if (Error error = device->upload(**made, i * each, {static_cast<const char *>(*slice), each}))
      return std::move(error);
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Settings and patches
//===----------------------------------------------------------------------===//

Expected<Device::Buffer *> GpuStore::setting(size_t step, const KernelArg &arg) {
  BufferPtr &buffer = settings[{step, arg.name}];
  if (buffer)
    return buffer.get();
  std::vector<char> value = settingBytes(program.steps[step], arg.name);
  auto made = own(buffer, value.size());
  if (!made)
    return made;
  if (Error error = device->upload(**made, 0, value))
    return std::move(error);
  return buffer.get();
}

Expected<Device::Buffer *> GpuStore::applied(size_t step, int64_t argument, size_t bytes) {
  return own(appliedParts[{step, argument}], bytes);
}

Error GpuStore::setPatch(size_t step, ArrayRef<KernelArg> args, const Patch &patch) {
  auto patched = patchArgs(program.steps[step], args);
  if (!patched)
    return patched.takeError();
  if (Error error = loadParts(patched->loads, patch, loaded))
    return error;
  size_t next = 0;
  for (auto [a, arg] : llvm::enumerate(args)) {
    if (arg.kind != KernelArgKind::Load)
      continue;
    auto buffer = applied(step, a, argumentBytes(arg.type));
    if (!buffer)
      return buffer.takeError();
    if (Error error = device->upload(**buffer, 0, asBytes(ArrayRef(loaded[next++]))))
      return error;
  }
  return Error::success();
}
