#include "lib/Runtime/GPU/GpuStore.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/DeviceBlocks.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

size_t ctxc::argumentBytes(Type type) {
  return elementsOf(type) * cast<MemRefType>(type).getElementTypeBitWidth() / 8;
}

std::vector<int64_t> GpuStore::windowsOf(const Program &program) {
  std::vector<int64_t> windows;
  for (const ProgramStep &step : program.steps)
    windows.push_back(windowOf(step).value_or(0));
  return windows;
}

Error GpuStore::share(const GpuOptions &options) {
  ranks.emplace(*device, options.share);
  if (Error error = ranks->join())
    return error;
  if (!ranks->whyHosts.empty() && options.onHosts)
    options.onHosts(ranks->whyHosts);
  return Error::success();
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

/// The name in the checkpoint; which part of it, and how it is stored.
std::string GpuStore::storedName(const StepArgument &argument) const {
  xf::LayerOp layer = program.steps[argument.step].layer;
  return layer.getStoredName(argument.source ? argument.source->name : argument.arg.name);
}
static std::string weightKey(StringRef name, const StepArgument &argument) {
  std::string key = (name + " ").str();
  llvm::raw_string_ostream os(key);
  if (argument.source)
    os << argument.arg.name << " ";
  os << argument.arg.type;
  return key;
}

Error GpuStore::uploadWeights(ArrayRef<StepArgument> arguments) {
  llvm::StringMap<size_t> sizes;
  size_t total = 0;
  for (const StepArgument &each : arguments)
    if (sizes.try_emplace(weightKey(storedName(each), each), 0).second)
      total += argumentBytes(each.arg.type);
  constexpr size_t mebi = size_t(1) << 20;
  if (size_t has = device->memory(); total > has)
    return makeError(device->target() + ": the weights need " +
                     std::to_string(llvm::divideCeil(total, mebi)) + " MiB of memory; " +
                     device->name() + " has " + std::to_string(has / mebi) + " MiB");
  for (const StepArgument &each : arguments)
    if (Error error = weight(each).takeError())
      return error;
  return Error::success();
}

Expected<const void *> GpuStore::addressOf(const StepArgument &argument, StringRef name) {
  const KernelArg &arg = argument.arg;
  if (argument.source) {
    copies = {}; // of what has been uploaded
    return partOfParameter(weights, name, *argument.source, ranks->rank(), copies);
  }
  auto type = cast<MemRefType>(arg.type);
  return weights.get(name, arg.stored
                               ? arg.stored
                               : RankedTensorType::get(type.getShape(), type.getElementType()));
}

Expected<Device::Buffer *> GpuStore::weight(const StepArgument &argument) {
  const KernelArg &arg = argument.arg;
  std::string name = storedName(argument);
  BufferPtr &buffer = weightBuffers[weightKey(name, argument)];
  if (buffer)
    return buffer.get();
  if (arg.kind == KernelArgKind::Bank)
    return bank(buffer, name, argument);
  auto type = cast<MemRefType>(arg.type);
  auto data = addressOf(argument, name);
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

Expected<std::vector<const void *>> GpuStore::slicesOf(const StepArgument &argument,
                                                       StringRef name) {
  if (!argument.source)
    return getSlices(weights, name, argument.arg.stored);
  copies = {};
  return partOfBank(weights, name, *argument.source, ranks->rank(), copies);
}

/// All slices, one after the other.
Expected<Device::Buffer *> GpuStore::bank(BufferPtr &buffer, StringRef name,
                                          const StepArgument &argument) {
  const KernelArg &arg = argument.arg;
  size_t bytes = argumentBytes(arg.type), count = arg.stored.getDimSize(0), each = bytes / count;
  auto slices = slicesOf(argument, name);
  if (!slices)
    return slices.takeError();
  auto made = own(buffer, llvm::alignTo(bytes, 4)); // quantised ones are read in words of 32 bits
  for (size_t i = 0; made && i < count; ++i) {
    if (hasScalesApart(storageOf(arg.stored.getElementType()))) {
      auto of =
          RankedTensorType::get(arg.stored.getShape().drop_front(), arg.stored.getElementType());
      if (Error error = uploadBlocks(*device, **made, i * each, name, of, (*slices)[i]))
        return std::move(error);
      continue;
    }
    if (Error error =
            device->upload(**made, i * each, {static_cast<const char *>((*slices)[i]), each}))
      return std::move(error);
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Settings and patches
//===----------------------------------------------------------------------===//

Expected<Device::Buffer *> GpuStore::setting(const StepArgument &argument) {
  BufferPtr &buffer = settings[{argument.step, argument.arg.name}];
  if (buffer)
    return buffer.get();
  ProgramStep step = program.steps[argument.step];
  std::vector<char> value = argument.source ? partOfSetting(step, *argument.source, ranks->rank())
                                            : settingBytes(step, argument.arg.name);
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

Error GpuStore::setPatch(ArrayRef<StepArgument> args, ArrayRef<KernelArg> whole,
                         const Patch &patch) {
  if (args.empty())
    return Error::success();
  const size_t step = args.front().step;
  auto patched = patchArgs(program.steps[step], whole);
  if (!patched)
    return patched.takeError();
  if (Error error = loadParts(patched->loads, patch, loaded))
    return error;
  Rows part;
  for (const StepArgument &each : args) {
    const std::string &name = each.source ? each.source->name : each.arg.name;
    size_t place = 0;
    for (const KernelArg &load : whole) {
      if (load.kind != KernelArgKind::Load)
        continue;
      if (load.name == name && load.index == each.arg.index)
        break;
      ++place;
    }
    ArrayRef<float> numbers = loaded[place];
    if (each.source && int64_t(each.source->part) == each.arg.index) {
      partOfRows(numbers, each.source->cut, ranks->rank(), part);
      numbers = part;
    }
    auto buffer = applied(step, each.index, argumentBytes(each.arg.type));
    if (!buffer)
      return buffer.takeError();
    if (Error error = device->upload(**buffer, 0, asBytes(numbers)))
      return error;
  }
  return Error::success();
}
