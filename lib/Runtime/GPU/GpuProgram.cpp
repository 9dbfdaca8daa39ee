#include "lib/Runtime/GPU/GpuProgram.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include <cstring>

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Error GpuProgram::compile(ArrayRef<xf::BlockOp> wanted) {
  SmallVector<xf::BlockOp> blocks;
  for (xf::BlockOp block : wanted) {
    std::string name = kernelName(block, prefix);
    if (!kernels.contains(name) && !refusals.contains(name))
      blocks.push_back(block);
  }
  if (blocks.empty())
    return Error::success();
  auto target = GpuTarget::named(store.device->target());
  if (!target)
    return target.takeError();
  auto refusal = [&](const std::string &kernel, const std::string &reason) {
    return "kernel '" + kernel + "' is not carried to " + (*target)->name() + ": " + reason +
           "; the compiled engine runs it";
  };
  llvm::erase_if(blocks, [&](xf::BlockOp block) {
    std::string name = kernelName(block, prefix), reason = obstacleToGpu(block);
    if (!reason.empty())
      refusals[name] = refusal(name, reason);
    return !reason.empty();
  });
  if (blocks.empty())
    return Error::success();
  auto module = buildKernelModule(blocks, prefix);
  if (failed(module))
    return makeError("the model has no compiled form; the reference engine runs it");
  if (roundsPrompts)
    for (xf::BlockOp block : blocks)
      if (readsPrompts(store.program, block))
        kernel::mark<kernel::Rounded>((*module)->lookupSymbol(kernelName(block, prefix)));
  std::vector<GpuRefusal> refused;
  {
    // Refusals are reported when the kernel is called.
    ScopedDiagnosticHandler quiet((*module)->getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
    });
    auto lowered = lowerKernelsToGPU(**module, **target, rows);
    if (failed(lowered))
      return makeError("the kernels could not be lowered for " + (*target)->name());
    refused = std::move(*lowered);
  }
  for (const GpuRefusal &each : refused)
    refusals[each.kernel] = refusal(each.kernel, each.reason);
  std::vector<GpuKernel> made = gpuKernels(**module);
  if (made.empty())
    return Error::success();
  auto code = (*target)->emit(**module);
  if (!code)
    return code.takeError();
  auto loaded = store.load(*code);
  if (!loaded)
    return loaded.takeError();
  for (GpuKernel &kernel : made) {
    Kernel &known = kernels[kernel.name];
    static_cast<GpuKernel &>(known) = std::move(kernel);
    known.code = *loaded;
  }
  return Error::success();
}

Error GpuProgram::check(xf::BlockOp block) const {
  auto found = refusals.find(kernelName(block, prefix));
  return found == refusals.end() ? Error::success() : makeError(found->second);
}

const GpuProgram::Kernel &GpuProgram::kernelOf(xf::BlockOp block) const {
  return kernels.find(kernelName(block, prefix))->second;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Expected<Device::Buffer *> GpuProgram::own(BufferPtr &buffer, size_t bytes) {
  if (buffer)
    return buffer.get();
  if (counted) {
    if (counted->buffers.insert(&buffer).second) {
      counted->need.bytes += bytes;
      counted->need.largest = std::max(counted->need.largest, bytes);
    }
    return nullptr;
  }
  auto made = store.device->allocate(bytes);
  if (!made)
    return made.takeError();
  buffer = std::move(*made);
  return buffer.get();
}

/// The bytes of a kernel's temporaries when the runs see the most tokens.
std::vector<size_t> GpuProgram::temporariesOf(const StepKernel &at) const {
  int64_t most[2];
  for (int64_t i : {0, 1}) {
    const GpuRun &run = *(at.runs[i] ? at.runs[i] : at.runs[0]);
    most[i] = run.capacity + (i == 0 && rows > 1 ? rows : 0);
  }
  std::vector<size_t> sizes;
  for (const Extent &size : kernelOf(at.block).temporaries)
    sizes.push_back(size.at(most[0], most[1]));
  return sizes;
}

/// Buffers large enough for the temporaries of any of the kernels, the largest first.
std::vector<size_t> GpuProgram::scratchOf(ArrayRef<StepKernel> all) const {
  std::vector<size_t> sizes;
  for (const StepKernel &at : all) {
    std::vector<size_t> own = temporariesOf(at);
    llvm::sort(own, std::greater<>());
    if (sizes.size() < own.size())
      sizes.resize(own.size());
    for (auto [size, mine] : llvm::zip(sizes, own))
      size = std::max(size, mine);
  }
  return sizes;
}

MemoryNeed GpuProgram::needOf(ArrayRef<StepKernel> all) {
  Counted count;
  counted = &count;
  std::vector<Device::Launch> none;
  for (const StepKernel &at : all)
    llvm::consumeError(addLaunches(at, {}, none));
  counted = nullptr;
  for (auto [i, size] : llvm::enumerate(scratchOf(all)))
    if (i >= scratch.size() || scratch[i]->bytes < size) {
      count.need.bytes += size;
      count.need.largest = std::max(count.need.largest, size);
    }
  return count.need;
}

Error GpuProgram::record(ArrayRef<StepKernel> all, RecordedSteps &record) {
  for (const StepKernel &at : all)
    if (Error error = check(at.block))
      return error;
  const Device &device = *store.device;
  constexpr size_t mebi = size_t(1) << 20;
  size_t needs = needOf(all).bytes, has = device.memory();
  if (needs > has)
    return makeError(device.target() + ": a run of " +
                     std::to_string(all.front().runs[0]->capacity) + " tokens needs " +
                     std::to_string(llvm::divideCeil(needs, mebi)) + " MiB more of memory; " +
                     device.name() + " has " + std::to_string(has / mebi) + " MiB free");
  std::vector<Device::Buffer *> temporaries;
  record.temporaries.clear();
  for (auto [i, size] : llvm::enumerate(scratchOf(all))) {
    if (i >= scratch.size())
      scratch.emplace_back();
    if (!scratch[i] || scratch[i]->bytes < size) {
      scratch[i].reset(); // sequences that were recorded with it keep it
      auto made = store.device->allocate(size);
      if (!made) {
        scratch.resize(i);
        return made.takeError();
      }
      scratch[i] = std::move(*made);
    }
    record.temporaries.push_back(scratch[i]);
    temporaries.push_back(scratch[i].get());
  }
  std::vector<Device::Launch> launches;
  for (const StepKernel &at : all)
    if (Error error = addLaunches(at, temporaries, launches))
      return error;
  auto made = store.device->record(launches);
  if (!made)
    return made.takeError();
  record.sequence = std::move(*made);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Expected<Device::Buffer *> GpuProgram::argument(const StepKernel &at, const Kernel &kernel,
                                                int64_t index) {
  const KernelArg &arg = kernel.args[index];
  xf::LayerOp layer = store.program.steps[at.step].layer;
  // A dual block's inputs and outputs are the full run's, then the reduced run's.
  auto chained = [&](ValueRange all) {
    int64_t place = arg.index, of = at.run;
    if (isDual(at) && place >= int64_t(all.size())) {
      place -= all.size();
      of = 1;
    }
    return own(values[{all[place].getAsOpaquePointer(), of}], argumentBytes(arg.type));
  };
  switch (arg.kind) {
  case KernelArgKind::Positions:
    return own(positions, rows * sizeof(int32_t));
  case KernelArgKind::Tokens:
    return own(tokens, rows * sizeof(int32_t));
  case KernelArgKind::Input:
    return chained(layer.getInputs());
  case KernelArgKind::Output:
    return chained(ValueRange(layer.getOutputs()));
  case KernelArgKind::Param:
  case KernelArgKind::Bank:
    return store.weight(at.step, arg);
  case KernelArgKind::Setting:
    return store.setting(at.step, arg);
  case KernelArgKind::State: {
    GpuRun &run = *at.runs[arg.run];
    size_t place = 0; // among those of its run
    for (int64_t i = 0; i < index; ++i)
      place += kernel.args[i].kind == KernelArgKind::State && kernel.args[i].run == arg.run;
    return own(run.states[at.step][place], run.room * argumentBytes(arg.type));
  }
  case KernelArgKind::Slots: {
    GpuRun &run = *at.runs[arg.run];
    return own(run.slotBuffer, run.room * sizeof(int32_t));
  }
  case KernelArgKind::Before:
  case KernelArgKind::After:
    break; // such kernels are refused
  case KernelArgKind::Load:
    return store.applied(at.step, index, argumentBytes(arg.type));
  case KernelArgKind::Store:
  case KernelArgKind::Counts:
  case KernelArgKind::Replay:
    return own(dualParts[{at.step, index}], argumentBytes(arg.type));
  }
  llvm_unreachable("an argument of no kind");
}

Error GpuProgram::addLaunches(const StepKernel &at, ArrayRef<Device::Buffer *> scratch,
                              std::vector<Device::Launch> &launches) {
  if (Error error = check(at.block))
    return error;
  const Kernel &kernel = kernelOf(at.block);
  const ProgramStep &step = store.program.steps[at.step];
  xf::BlockOp block = at.block;
  std::string source = ("block @" + block.getSymName()).str();
  if (step.index)
    source += ", layer " + std::to_string(*step.index);
  if (rows > 1)
    source += ", " + std::to_string(rows) + " rows";
  // The largest temporary takes the largest buffer, and so on.
  std::vector<size_t> sizes = temporariesOf(at), order(sizes.size()), place(sizes.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::sort(order, [&](size_t a, size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
  });
  for (auto [i, temporary] : llvm::enumerate(order))
    place[temporary] = i;
  for (const GpuLaunch &each : kernel.launches) {
    Device::Launch launch{each.function,          source, uint32_t(each.blocks),
                          uint32_t(each.threads), {},     kernel.code};
    for (const GpuBuffer &buffer : each.buffers) {
      if (buffer.kind == GpuBuffer::Temporary) {
        launch.buffers.push_back(counted ? nullptr : scratch[place[buffer.index]]);
        continue;
      }
      auto found = buffer.kind == GpuBuffer::Visible
                       ? own(visible[isDual(at) ? 0 : at.run], 2 * sizeof(int32_t))
                       : argument(at, kernel, buffer.index);
      if (!found)
        return found.takeError();
      launch.buffers.push_back(*found);
    }
    launches.push_back(std::move(launch));
  }
  return Error::success();
}
