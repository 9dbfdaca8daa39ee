// Blocks that ranks share: the kernels of their segments, called one after the other, and what is
// transferred between these (ctxc/Shard/LocalBlock.h).
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/Parts.h"

using namespace mlir;
using namespace ctxc;

llvm::SmallVector<xf::BlockOp> KernelCalls::compiledFor(xf::BlockOp block) const {
  const shard::LocalBlock *local = localOf(block);
  if (!local)
    return {block};
  llvm::SmallVector<xf::BlockOp> blocks;
  for (const shard::Segment &segment : local->segments)
    if (segment.block)
      blocks.push_back(segment.block);
  return blocks;
}

/// Patches are loaded as the block loads them, and stored in the order of the segments.
llvm::SmallVector<KernelArg> KernelCalls::patchArguments(xf::BlockOp block) const {
  if (!localOf(block))
    return kernels.at({block, false}).args;
  llvm::SmallVector<KernelArg> args = loadArguments(block);
  for (xf::BlockOp segment : compiledFor(block))
    for (const KernelArg &arg : kernels.at({segment, false}).args)
      if (arg.kind == KernelArgKind::Store)
        args.push_back(arg);
  return args;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

llvm::Error KernelCalls::bindPart(size_t step, const KernelArg &arg,
                                  const shard::LocalSource &source, Weights &weights,
                                  Binding &binding) {
  xf::LayerOp layer = program.steps[step].layer;
  const std::string stored = layer.getStoredName(source.name);
  PartCopies &into = &weights == &original ? copies : binding.copies;
  void *argument = nullptr;
  switch (arg.kind) {
  case KernelArgKind::Param: {
    auto part = partOfParameter(weights, stored, source, local->rank(), into);
    if (!part)
      return part.takeError();
    argument = const_cast<void *>(*part);
    break;
  }
  case KernelArgKind::Bank: {
    auto bank = partOfBank(weights, stored, source, local->rank(), into);
    if (!bank)
      return bank.takeError();
    binding.banks.push_back(std::move(*bank));
    argument = binding.banks.back().data();
    break;
  }
  case KernelArgKind::Setting: {
    std::vector<char> &bytes = settings[step][arg.name];
    if (bytes.empty())
      bytes = partOfSetting(program.steps[step], source, local->rank());
    argument = bytes.data();
    break;
  }
  default: // a loaded patch, which changes from call to call
    break;
  }
  binding.arguments.push_back(argument);
  return llvm::Error::success();
}

llvm::Error KernelCalls::copyParts() {
  for (size_t i = stage.first; i < stage.end; ++i) {
    xf::BlockOp block = program.steps[i].block;
    const shard::LocalBlock *local = localOf(block);
    if (!local)
      continue;
    for (xf::BlockOp segment : compiledFor(block)) {
      if (llvm::Error error = mayGoOn())
        return error;
      const Kernel &kernel = kernels.at({segment, false});
      llvm::Expected<Binding> made = bind(i, kernel, original, local);
      if (!made)
        return made.takeError();
      bindings.try_emplace({i, &kernel}, std::move(*made));
    }
  }
  return llvm::Error::success();
}

void *KernelCalls::loadedPart(const KernelArg &arg, Progress &progress) {
  auto source = progress.local->sources.find(arg.name);
  const bool isCut = source != progress.local->sources.end();
  const std::string &name = isCut ? source->second.name : arg.name;
  auto place = llvm::find_if(
      loads, [&](const KernelArg &load) { return load.name == name && load.index == arg.index; });
  Rows &whole = loaded[place - loads.begin()];
  if (!isCut || source->second.part != arg.index)
    return whole.data();
  Rows &part = cutLoads[{arg.name, arg.index}];
  partOfRows(whole, source->second.cut, local->rank(), part);
  return part.data();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

llvm::Error KernelCalls::transfer(ArrayRef<shard::Transfer> transfers, int64_t rows,
                                  llvm::function_ref<const Rows &(unsigned)> valueOf) {
  std::vector<SharedRows> shared;
  for (const shard::Transfer &each : transfers)
    if (each.isSent()) {
      Rows &to = slots[each.to];
      if (each.kind == shard::Transfer::Collect)
        to.assign(rows * each.elements, 0);
      else
        to.resize(rows * each.elements);
      shared.push_back({&each, &valueOf(each.from), &to});
    }
  if (!shared.empty())
    if (llvm::Error error = neighbours->makeWhole(shared))
      return error;
  for (const shard::Transfer &each : transfers) {
    if (each.isSent())
      continue;
    const Rows &from = valueOf(each.from);
    Rows &to = slots[each.to];
    const int64_t width = each.cut.partSize(local->rank());
    to.resize(rows * width);
    for (int64_t row = 0; row < rows; ++row)
      each.cut.visitRuns(local->rank(), [&](int64_t inWhole, int64_t inPart, int64_t count) {
        std::copy_n(from.begin() + row * each.elements + inWhole, count,
                    to.begin() + row * width + inPart);
      });
  }
  return llvm::Error::success();
}

llvm::Error KernelCalls::runSegments(size_t step, xf::BlockOp block,
                                     const shard::LocalBlock &blocks, Weights &weights,
                                     StepCall &call) {
  if (call.loads)
    loads = loadArguments(block);
  slots.resize(std::max<size_t>(slots.size(), blocks.slots));
  // The block's arguments come first, and are read where they are.
  const unsigned arguments = block.getNumArguments();
  auto valueOf = [&](unsigned i) -> const Rows & {
    return i < arguments ? *call.inputs[i] : slots[i];
  };
  Progress progress;
  progress.local = &blocks;
  for (const shard::Segment &segment : blocks.segments) {
    if (llvm::Error error = transfer(segment.before, call.rows, valueOf))
      return error;
    if (!segment.block)
      continue;
    StepCall part;
    part.rows = call.rows;
    part.tokens = call.tokens;
    part.positions = call.positions;
    std::copy_n(call.runs, 2, part.runs);
    part.parts = call.parts;
    part.obligations = std::move(call.obligations);
    for (unsigned i : segment.inputs)
      part.inputs.push_back(&valueOf(i));
    for (unsigned i : segment.outputs)
      part.outputs.push_back(std::move(slots[i]));
    if (llvm::Error error =
            run(step, kernels.at({segment.block, call.alone}), weights, part, progress))
      return error;
    for (auto [i, rows] : llvm::zip(segment.outputs, part.outputs))
      slots[i] = std::move(rows);
    call.obligations = std::move(part.obligations);
    if (segment.predictsReplay)
      call.replayError = std::move(part.replayError);
  }
  for (auto [output, i] : llvm::zip(call.outputs, blocks.results))
    if (i < arguments || llvm::count(blocks.results, i) > 1)
      output = valueOf(i);
    else
      std::swap(output, slots[i]); // each has the other's memory the next time
  return llvm::Error::success();
}
