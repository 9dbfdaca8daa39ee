// The launches of a block, or of the segments that a rank has of it, and the buffer for each of
// their arguments.
#include "lib/Runtime/GPU/GpuProgram.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

std::vector<GpuProgram::Part> GpuProgram::partsOf(xf::BlockOp block) const {
  std::vector<Part> parts;
  const shard::LocalBlock *local = store.ranks ? store.ranks->blocks().find(block) : nullptr;
  if (!local) {
    parts.push_back({nullptr, nullptr, block, &kernelOf(block)});
    return parts;
  }
  Part next;
  next.local = local;
  for (const shard::Segment &segment : local->segments) {
    next.segment = &segment;
    next.block = segment.block;
    next.kernel = segment.block ? &kernelOf(segment.block) : nullptr;
    parts.push_back(next);
    if (!next.kernel)
      continue;
    next.first += next.kernel->args.size();
    for (const KernelArg &arg : next.kernel->args)
      next.states[arg.run] += arg.kind == KernelArgKind::State;
  }
  return parts;
}

std::vector<StepArgument> GpuProgram::argumentsOf(size_t step, xf::BlockOp block) const {
  std::vector<StepArgument> all;
  for (const Part &part : partsOf(block)) {
    if (!part.kernel)
      continue;
    for (auto [i, arg] : llvm::enumerate(part.kernel->args)) {
      StepArgument made{step, arg, part.first + int64_t(i)};
      if (part.local)
        if (auto found = part.local->sources.find(arg.name); found != part.local->sources.end())
          made.source = &found->second;
      all.push_back(std::move(made));
    }
  }
  return all;
}

/// An input or output of a block: of a dual block those of the full run, then of the reduced run.
Expected<Device::Buffer *> GpuProgram::stream(const StepKernel &at, bool isInput, int64_t place) {
  xf::LayerOp layer = store.program.steps[at.step].layer;
  ValueRange all = isInput ? ValueRange(layer.getInputs()) : ValueRange(layer.getOutputs());
  int64_t of = at.run;
  if (isDual(at) && place >= int64_t(all.size())) {
    place -= all.size();
    of = 1;
  }
  const size_t bytes =
      rows * sizeof(float) * cast<ShapedType>(all[place].getType()).getNumElements();
  return own(values[{all[place].getAsOpaquePointer(), of}], bytes);
}

/// Where a value is between segments.
Expected<Device::Buffer *> GpuProgram::slot(const StepKernel &at, const Part &part,
                                            unsigned index) {
  xf::BlockOp block = at.block;
  if (index < block.getNumArguments())
    return stream(at, /*isInput=*/true, index);
  const auto *result = llvm::find(part.local->results, index);
  if (result != part.local->results.end())
    return stream(at, /*isInput=*/false, result - part.local->results.begin());
  size_t elements = 0;
  auto fit = [&](unsigned of, int64_t numbers) {
    if (of == index)
      elements = std::max<size_t>(elements, numbers);
  };
  for (const shard::Segment &segment : part.local->segments) {
    for (const shard::Transfer &each : segment.before)
      fit(each.to, each.isSent() ? each.elements : each.cut.partSize(store.ranks->rank()));
    xf::BlockOp of = segment.block;
    if (!of)
      continue;
    for (auto [number, type] : llvm::zip_equal(segment.inputs, of.getArgumentTypes()))
      fit(number, cast<ShapedType>(type).getNumElements());
    for (auto [number, type] : llvm::zip_equal(segment.outputs, of.getResultTypes()))
      fit(number, cast<ShapedType>(type).getNumElements());
  }
  return own(slots[{block, index}], rows * elements * sizeof(float));
}

Expected<Device::Buffer *> GpuProgram::argument(const StepKernel &at, const Part &part,
                                                int64_t index) {
  const Kernel &kernel = *part.kernel;
  const KernelArg &arg = kernel.args[index];
  StepArgument whole{at.step, arg, part.first + index};
  if (part.local)
    if (auto found = part.local->sources.find(arg.name); found != part.local->sources.end())
      whole.source = &found->second;
  switch (arg.kind) {
  case KernelArgKind::Positions:
    return own(positions, rows * sizeof(int32_t));
  case KernelArgKind::Tokens:
    return own(tokens, rows * sizeof(int32_t));
  case KernelArgKind::Input:
    return part.segment ? slot(at, part, part.segment->inputs[arg.index])
                        : stream(at, /*isInput=*/true, arg.index);
  case KernelArgKind::Output:
    return part.segment ? slot(at, part, part.segment->outputs[arg.index])
                        : stream(at, /*isInput=*/false, arg.index);
  case KernelArgKind::Param:
  case KernelArgKind::Bank:
    return store.weight(whole);
  case KernelArgKind::Setting:
    return store.setting(whole);
  case KernelArgKind::State: {
    GpuRun &run = *at.runs[arg.run];
    size_t place = part.states[arg.run]; // among those of its run
    for (int64_t i = 0; i < index; ++i)
      place += kernel.args[i].kind == KernelArgKind::State && kernel.args[i].run == arg.run;
    return own(run.states[at.step][place],
               run.slotsOf(store.windows[at.step]).room * argumentBytes(arg.type));
  }
  case KernelArgKind::Slots: {
    Slots &slots = at.runs[arg.run]->slotsOf(store.windows[at.step]);
    return own(slots.positions, slots.room * sizeof(int32_t));
  }
  case KernelArgKind::Before:
  case KernelArgKind::After:
    break; // such kernels are refused
  case KernelArgKind::Room:
    break; // these kernels find states by token
  case KernelArgKind::Load:
    return store.applied(at.step, whole.index, argumentBytes(arg.type));
  case KernelArgKind::Counts:
    countParts.insert({at.step, whole.index});
    [[fallthrough]];
  case KernelArgKind::Store:
  case KernelArgKind::Replay:
    return own(dualParts[{at.step, whole.index}], argumentBytes(arg.type));
  }
  llvm_unreachable("an argument of no kind");
}

/// What ranks exchange before a segment, in a batch of its own.
Error GpuProgram::addTransfers(const StepKernel &at, const Part &part,
                               std::vector<Batch> &batches) {
  Batch batch;
  auto add = [&](const shard::Transfer *how, unsigned from,
                 Expected<Device::Buffer *> to) -> Error {
    if (!to)
      return to.takeError();
    auto source = slot(at, part, from);
    if (!source)
      return source.takeError();
    batch.before.push_back({how, *source, *to});
    return Error::success();
  };
  for (const shard::Transfer &each : part.segment->before)
    if (Error error = add(&each, each.from, slot(at, part, each.to)))
      return error;
  if (!batch.before.empty())
    batches.push_back(std::move(batch));
  return Error::success();
}

Error GpuProgram::addLaunches(const StepKernel &at, ArrayRef<Device::Buffer *> scratch,
                              std::vector<Batch> &batches) {
  if (Error error = check(at.block))
    return error;
  const std::vector<Part> parts = partsOf(at.block);
  for (const Part &part : parts) {
    if (part.segment)
      if (Error error = addTransfers(at, part, batches))
        return error;
    if (part.kernel)
      if (Error error = addLaunches(at, part, scratch, batches))
        return error;
  }
  const Part &last = parts.back();
  if (!last.local)
    return Error::success();
  // A result that is an argument, or another result too, has a place of its own.
  Batch copies;
  for (auto [i, from] : llvm::enumerate(last.local->results)) {
    auto source = slot(at, last, from);
    auto to = stream(at, /*isInput=*/false, i);
    if (!source || !to)
      return llvm::joinErrors(source.takeError(), to.takeError());
    if (*source != *to)
      copies.before.push_back({nullptr, *source, *to});
  }
  if (!copies.before.empty())
    batches.push_back(std::move(copies));
  return Error::success();
}

Error GpuProgram::addLaunches(const StepKernel &at, const Part &part,
                              ArrayRef<Device::Buffer *> scratch, std::vector<Batch> &batches) {
  const Kernel &kernel = *part.kernel;
  const ProgramStep &step = store.program.steps[at.step];
  xf::BlockOp block = part.block;
  std::string source = ("block @" + block.getSymName()).str();
  if (step.index)
    source += ", layer " + std::to_string(*step.index);
  if (rows > 1)
    source += ", " + std::to_string(rows) + " rows";
  // The largest temporary takes the largest buffer, and so on.
  std::vector<size_t> sizes = temporariesOf(at, kernel), order(sizes.size()), place(sizes.size());
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
                       ? own(visible[{store.windows[at.step], isDual(at) ? 0 : int(at.run)}],
                             2 * sizeof(int32_t))
                       : argument(at, part, buffer.index);
      if (!found)
        return found.takeError();
      launch.buffers.push_back(*found);
    }
    batches.back().launches.push_back(std::move(launch));
  }
  return Error::success();
}
