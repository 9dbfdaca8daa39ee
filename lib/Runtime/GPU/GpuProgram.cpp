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

SmallVector<xf::BlockOp> GpuProgram::compiledFor(xf::BlockOp block) const {
  const shard::LocalBlock *local = store.ranks ? store.ranks->blocks().find(block) : nullptr;
  if (!local)
    return {block};
  SmallVector<xf::BlockOp> blocks;
  for (const shard::Segment &segment : local->segments)
    if (segment.block)
      blocks.push_back(segment.block);
  return blocks;
}

Error GpuProgram::compile(ArrayRef<xf::BlockOp> wanted) {
  SmallVector<xf::BlockOp> blocks;
  llvm::DenseSet<Operation *> ofPrompts;
  for (xf::BlockOp asked : wanted)
    for (xf::BlockOp block : compiledFor(asked)) {
      std::string name = kernelName(block, prefix);
      if (!kernels.contains(name) && !refusals.contains(name))
        blocks.push_back(block);
      if (readsPrompts(store.program, asked))
        ofPrompts.insert(block);
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
      if (ofPrompts.contains(block))
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
  for (xf::BlockOp each : compiledFor(block))
    if (auto found = refusals.find(kernelName(each, prefix)); found != refusals.end())
      return makeError(found->second);
  return Error::success();
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
std::vector<size_t> GpuProgram::temporariesOf(const StepKernel &at, const Kernel &kernel) const {
  int64_t most[2];
  for (int64_t i : {0, 1}) {
    GpuRun &run = *(at.runs[i] ? at.runs[i] : at.runs[0]);
    most[i] = std::min(run.capacity + (i == 0 && rows > 1 ? rows : 0),
                       run.slotsOf(store.windows[at.step]).room);
  }
  std::vector<size_t> sizes;
  for (const Extent &size : kernel.temporaries)
    sizes.push_back(size.at(most[0], most[1]));
  return sizes;
}

/// Buffers large enough for the temporaries of any of the kernels, the largest first.
std::vector<size_t> GpuProgram::scratchOf(ArrayRef<StepKernel> all) const {
  std::vector<size_t> sizes;
  for (const StepKernel &at : all)
    for (xf::BlockOp block : compiledFor(at.block)) {
      std::vector<size_t> own = temporariesOf(at, kernelOf(block));
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
  std::vector<Batch> none(1);
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
  std::vector<Batch> batches(1);
  for (const StepKernel &at : all)
    if (Error error = addLaunches(at, temporaries, batches))
      return error;
  std::vector<RecordedPart> parts;
  if (all.empty()) { // of a rank that has the head alone
    record.parts.emplace_back();
    return Error::success();
  }
  for (Batch &batch : batches) {
    auto made = store.device->record(batch.launches);
    if (!made)
      return made.takeError();
    parts.push_back({std::move(batch.before), std::move(*made)});
  }
  record.parts = std::move(parts);
  return Error::success();
}

Error GpuProgram::run(RecordedSteps &record) {
  if (!record.parts.front().sequence)
    return Error::success();
  if (!store.ranks)
    return store.device->run(*record.parts.front().sequence).takeError();
  if (Error error = store.ranks->meet())
    return error;
  auto runAll = [&]() -> Error {
    for (const RecordedPart &part : record.parts) {
      if (!part.before.empty())
        if (Error error = store.ranks->transfer(part.before, rows))
          return error;
      if (Error error = store.device->enqueue(*part.sequence))
        return error;
    }
    return store.device->finish();
  };
  return store.ranks->fatal(runAll());
}
