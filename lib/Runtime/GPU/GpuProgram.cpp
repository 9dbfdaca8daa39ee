#include "lib/Runtime/GPU/GpuProgram.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Support/Error.h"
#include <cstring>

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

static size_t rowBytes(Type type) {
  return elementsOf(type) * cast<MemRefType>(type).getElementTypeBitWidth() / 8;
}

template <typename T> static ArrayRef<char> asBytes(ArrayRef<T> numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(T)};
}

//===----------------------------------------------------------------------===//
// Code and weights
//===----------------------------------------------------------------------===//

Error GpuProgram::compile() {
  auto target = GpuTarget::named(device->target());
  if (!target)
    return target.takeError();
  auto module = buildKernelModule(kernelBlocks(program));
  if (failed(module))
    return makeError("the model has no compiled form; run it with --backend reference");
  std::vector<GpuRefusal> refused;
  {
    // What is refused is said where it is asked for.
    ScopedDiagnosticHandler quiet((*module)->getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
    });
    auto lowered = lowerKernelsToGPU(**module, **target);
    if (failed(lowered))
      return makeError("the kernels could not be lowered for " + (*target)->name());
    refused = std::move(*lowered);
  }
  for (const GpuRefusal &refusal : refused)
    refusals[refusal.kernel] = "kernel '" + refusal.kernel + "' is not carried to " +
                               (*target)->name() + ": " + refusal.reason +
                               "; run it with --backend compiled";
  for (const ProgramStep &step : program.steps)
    if (Error error = check(step.block))
      return error;
  for (GpuKernel &kernel : gpuKernels(**module)) {
    std::string name = kernel.name;
    kernels[name] = std::move(kernel);
  }
  auto code = (*target)->emit(**module);
  if (!code)
    return code.takeError();
  if (Error error = device->load(*code))
    return error;
  return uploadWeights();
}

Error GpuProgram::check(xf::BlockOp block) const {
  auto found = refusals.find(kernelName(block));
  return found == refusals.end() ? Error::success() : makeError(found->second);
}

const GpuKernel &GpuProgram::kernelOf(xf::BlockOp block) const {
  return kernels.find(kernelName(block))->second;
}

/// A tensor's name and how it is stored.
static std::string weightKey(StringRef name, Type type) {
  std::string key = (name + " ").str();
  llvm::raw_string_ostream(key) << type;
  return key;
}

Error GpuProgram::uploadWeights() {
  llvm::StringMap<size_t> sizes;
  size_t total = 0;
  auto each = [&](auto visit) -> Error {
    for (size_t i = 0; i < program.steps.size(); ++i)
      for (const KernelArg &arg : kernelOf(program.steps[i].block).args)
        if (arg.kind == KernelArgKind::Param || arg.kind == KernelArgKind::Bank)
          if (Error error = visit(i, arg))
            return error;
    return Error::success();
  };
  if (Error error = each([&](size_t i, const KernelArg &arg) {
        ProgramStep step = program.steps[i];
        if (sizes.try_emplace(weightKey(step.layer.getStoredName(arg.name), arg.type), 0).second)
          total += rowBytes(arg.type);
        return Error::success();
      }))
    return error;
  constexpr size_t mebi = size_t(1) << 20;
  if (size_t has = device->memory(); total > has)
    return makeError(device->target() + ": the weights need " +
                     std::to_string(llvm::divideCeil(total, mebi)) + " MiB of memory; " +
                     device->name() + " has " + std::to_string(has / mebi) + " MiB");
  return each([&](size_t i, const KernelArg &arg) { return weight(i, arg).takeError(); });
}

Expected<Device::Buffer *> GpuProgram::own(BufferPtr &buffer, size_t bytes) {
  if (!buffer) {
    auto made = device->allocate(bytes);
    if (!made)
      return made.takeError();
    buffer = std::move(*made);
  }
  return buffer.get();
}

Expected<Device::Buffer *> GpuProgram::weight(size_t i, const KernelArg &arg) {
  ProgramStep step = program.steps[i];
  std::string name = step.layer.getStoredName(arg.name);
  BufferPtr &buffer = weightBuffers[weightKey(name, arg.type)];
  if (buffer)
    return buffer.get();
  if (arg.kind == KernelArgKind::Bank)
    return bank(buffer, name, arg);
  auto type = cast<MemRefType>(arg.type);
  auto data = weights.get(name, RankedTensorType::get(type.getShape(), type.getElementType()));
  if (!data)
    return data.takeError();
  auto made = own(buffer, rowBytes(type));
  if (!made)
    return made;
  if (Error error = device->upload(**made, 0, {static_cast<const char *>(*data), rowBytes(type)}))
    return std::move(error);
  return buffer.get();
}

/// All slices, one after the other.
Expected<Device::Buffer *> GpuProgram::bank(BufferPtr &buffer, StringRef name,
                                            const KernelArg &arg) {
  size_t bytes = rowBytes(arg.type), count = arg.stored.getDimSize(0), each = bytes / count;
  auto made = own(buffer, bytes);
  for (size_t i = 0; made && i < count; ++i) {
    auto slice = getSlice(weights, name, arg.stored, i);
    if (!slice)
      return slice.takeError();
    if (Error error = device->upload(**made, i * each, {static_cast<const char *>(*slice), each}))
      return std::move(error);
  }
  return made;
}

Expected<Device::Buffer *> GpuProgram::setting(size_t step, const KernelArg &arg) {
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

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Expected<Device::Buffer *> GpuProgram::argument(size_t step, const GpuKernel &kernel, int64_t index,
                                                int64_t stream, GpuRun *const runs[2],
                                                bool isDual) {
  const KernelArg &arg = kernel.args[index];
  xf::LayerOp layer = program.steps[step].layer;
  // A dual block's inputs and outputs are the full run's, then the reduced run's.
  auto chained = [&](ValueRange all) {
    int64_t place = arg.index, of = stream;
    if (isDual && place >= int64_t(all.size())) {
      place -= all.size();
      of = 1;
    }
    return own(values[{all[place].getAsOpaquePointer(), of}], rowBytes(arg.type));
  };
  switch (arg.kind) {
  case KernelArgKind::Positions:
    return own(position, sizeof(int32_t));
  case KernelArgKind::Tokens:
    return own(token, sizeof(int32_t));
  case KernelArgKind::Input:
    return chained(layer.getInputs());
  case KernelArgKind::Output:
    return chained(ValueRange(layer.getOutputs()));
  case KernelArgKind::Param:
  case KernelArgKind::Bank:
    return weight(step, arg);
  case KernelArgKind::Setting:
    return setting(step, arg);
  case KernelArgKind::State: {
    GpuRun &run = *runs[arg.stream];
    size_t place = 0; // among those of its stream
    for (int64_t i = 0; i < index; ++i)
      place += kernel.args[i].kind == KernelArgKind::State && kernel.args[i].stream == arg.stream;
    auto &states = run.states[step];
    if (states.size() <= place)
      states.resize(place + 1);
    return own(states[place], run.capacity * rowBytes(arg.type));
  }
  case KernelArgKind::Slots: {
    GpuRun &run = *runs[arg.stream];
    return own(run.slotBuffer, run.capacity * sizeof(int32_t));
  }
  case KernelArgKind::Load:
    return own(appliedParts[{step, index}], rowBytes(arg.type));
  case KernelArgKind::Store:
  case KernelArgKind::Counts:
  case KernelArgKind::Replay:
    return own(dualParts[{step, index}], rowBytes(arg.type));
  }
  llvm_unreachable("an argument of no kind");
}

Error GpuProgram::addLaunches(size_t step, xf::BlockOp block, int64_t stream, GpuRun *const runs[2],
                              std::vector<Device::Launch> &launches, RecordedSteps &record) {
  if (Error error = check(block))
    return error;
  const GpuKernel &kernel = kernelOf(block);
  bool isDual = block == program.steps[step].dual;
  std::string source = ("block @" + block.getSymName()).str();
  if (program.steps[step].index)
    source += ", layer " + std::to_string(*program.steps[step].index);
  std::vector<Device::Buffer *> temporaries;
  for (const Extent &size : kernel.temporaries) {
    auto made = device->allocate(
        size.at(runs[0]->capacity, runs[1] ? runs[1]->capacity : runs[0]->capacity));
    if (!made)
      return made.takeError();
    temporaries.push_back(made->get());
    record.temporaries.push_back(std::move(*made));
  }
  for (const GpuLaunch &each : kernel.launches) {
    Device::Launch launch{each.function, source, uint32_t(each.blocks), uint32_t(each.threads), {}};
    for (const GpuBuffer &buffer : each.buffers) {
      if (buffer.kind == GpuBuffer::Temporary) {
        launch.buffers.push_back(temporaries[buffer.index]);
        continue;
      }
      auto found = buffer.kind == GpuBuffer::Visible
                       ? own(visible[isDual ? 0 : stream], 2 * sizeof(int32_t))
                       : argument(step, kernel, buffer.index, stream, runs, isDual);
      if (!found)
        return found.takeError();
      launch.buffers.push_back(*found);
    }
    launches.push_back(std::move(launch));
  }
  return Error::success();
}

Error GpuProgram::record(ArrayRef<Device::Launch> launches, RecordedSteps &record) {
  auto made = device->record(launches);
  if (!made)
    return made.takeError();
  record.sequence = std::move(*made);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What changes from token to token
//===----------------------------------------------------------------------===//

Error GpuProgram::setToken(int32_t id, int32_t at, GpuRun *full, GpuRun *reduced) {
  auto put = [&](BufferPtr &buffer, ArrayRef<int32_t> numbers, size_t offset,
                 size_t capacity) -> Error {
    auto made = own(buffer, capacity * sizeof(int32_t));
    if (!made)
      return made.takeError();
    return device->upload(**made, offset * sizeof(int32_t), asBytes(numbers));
  };
  if (Error error = put(token, id, 0, 1))
    return error;
  if (Error error = put(position, at, 0, 1))
    return error;
  for (GpuRun *run : {full, reduced})
    if (run) {
      run->slots[run->count] = at;
      if (Error error = put(run->slotBuffer, at, run->count, run->capacity))
        return error;
    }
  int32_t counts[2] = {int32_t(full->count + 1), reduced ? int32_t(reduced->count + 1) : 0};
  if (Error error = put(visible[0], counts, 0, 2))
    return error;
  return put(visible[1], {counts[1], counts[1]}, 0, 2);
}

Error GpuProgram::setPatch(const Patch &patch) {
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (!step.applied)
      continue;
    if (Error error = check(step.applied))
      return error;
    const GpuKernel &kernel = kernelOf(step.applied);
    if (Error error = loadParts(step, kernel.args, patch, loaded))
      return error;
    size_t next = 0;
    for (auto [a, arg] : llvm::enumerate(kernel.args)) {
      if (arg.kind != KernelArgKind::Load)
        continue;
      auto buffer = own(appliedParts[{i, int64_t(a)}], rowBytes(arg.type));
      if (!buffer)
        return buffer.takeError();
      if (Error error = device->upload(**buffer, 0, asBytes(ArrayRef(loaded[next++]))))
        return error;
    }
  }
  return Error::success();
}

Error GpuProgram::clearCounts() {
  for (auto &entry : dualParts) {
    const GpuKernel &kernel = kernelOf(program.steps[entry.first.first].dual);
    if (kernel.args[entry.first.second].kind != KernelArgKind::Counts)
      continue;
    std::vector<char> zeros(entry.second->bytes);
    if (Error error = device->upload(*entry.second, 0, zeros))
      return error;
  }
  return Error::success();
}

Error GpuProgram::readPatch(size_t index, PatchStep &result) {
  ProgramStep step = program.steps[index];
  const GpuKernel &kernel = kernelOf(step.dual);
  std::vector<Rows> parts;
  for (auto [a, arg] : llvm::enumerate(kernel.args)) {
    auto found = dualParts.find({index, int64_t(a)});
    if (found == dualParts.end())
      continue;
    std::vector<char> content(found->second->bytes);
    if (Error error = device->download(content, *found->second, 0))
      return error;
    if (arg.kind == KernelArgKind::Store) {
      parts.emplace_back(content.size() / sizeof(float));
      memcpy(parts.back().data(), content.data(), content.size());
    } else if (arg.kind == KernelArgKind::Replay) {
      memcpy(&result.replayError[*step.index], content.data(), sizeof(double));
    } else {
      std::vector<int64_t> counts(content.size() / sizeof(int64_t));
      memcpy(counts.data(), content.data(), content.size());
      for (size_t i = 0; i + 1 < counts.size(); i += 2) {
        result.obligations[*step.index].harmless += counts[i];
        result.obligations[*step.index].harmful += counts[i + 1];
      }
    }
  }
  return readParts(step, kernel.args, parts, 0, result.patch);
}

Expected<std::vector<float>> GpuProgram::value(Value value, int64_t stream) {
  BufferPtr &buffer = values[{value.getAsOpaquePointer(), stream}];
  if (!buffer)
    return makeError("a value of the model was not computed");
  std::vector<float> numbers(buffer->bytes / sizeof(float));
  llvm::MutableArrayRef<char> into(reinterpret_cast<char *>(numbers.data()), buffer->bytes);
  if (Error error = device->download(into, *buffer, 0))
    return std::move(error);
  return numbers;
}

Error GpuProgram::setValue(Value value, ArrayRef<float> numbers) {
  BufferPtr &buffer = values[{value.getAsOpaquePointer(), 0}];
  if (!buffer || buffer->bytes != numbers.size() * sizeof(float))
    return makeError("a value of the model has another size");
  return device->upload(*buffer, 0, asBytes(numbers));
}
