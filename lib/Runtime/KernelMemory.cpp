// How much memory kernels take, before any of them is called.
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "lib/Runtime/KernelCalls.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace ctxc;

size_t ctxc::bytesOfSlot(const KernelArg &arg) {
  return elementsOf(arg.type) * cast<MemRefType>(arg.type).getElementTypeBitWidth() / 8;
}

KernelCalls::StepSize KernelCalls::sizeOf(size_t step, int64_t rows, int64_t room) const {
  StepSize size;
  for (xf::BlockOp block : compiledFor(program.steps[step].block)) {
    auto found = kernels.find({block, false});
    // Another stage's, or an embedding's, which is compiled when it is called.
    if (!stage.has(step) || found == kernels.end())
      continue;
    const Kernel &kernel = found->second;
    uint64_t outputs = 0;
    for (const KernelArg &arg : kernel.args) {
      if (arg.kind == KernelArgKind::State)
        size.slot += bytesOfSlot(arg);
      else if (arg.kind == KernelArgKind::Before || arg.kind == KernelArgKind::After)
        size.carried += elementsOf(arg.type) * sizeof(float);
      else if (arg.kind == KernelArgKind::Output)
        outputs += rows * elementsOf(arg.type) * sizeof(float);
    }
    size.work = std::max<uint64_t>(size.work, outputs + kernel.workspace(rows, room, 1));
  }
  return size;
}

llvm::Error KernelCalls::checkMemory(const CompiledRun &run, int64_t rows) {
  if (llvm::any_of(run.steps, [](const StepState &step) {
        return !step.memories.empty() || step.isRecurrent;
      }))
    return llvm::Error::success();
  uint64_t states = 0, work = 0;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const int64_t together = program.head() == i ? 1 : rows;
    const bool keepsAll = run.keeps() == Keeps::All;
    const int64_t room = roomOfWindow(keepsAll ? std::nullopt : windows[i], together, run.capacity);
    const StepSize size = sizeOf(i, together, room);
    states += room * size.slot + size.carried;
    work = std::max(work, size.work);
  }
  std::optional<uint64_t> there = availableMemory();
  if (!there || states + work <= *there)
    return llvm::Error::success();
  auto gigabytes = [](uint64_t bytes) { return llvm::format("%.1f GB", double(bytes) * 1e-9); };
  std::string text;
  llvm::raw_string_ostream(text) << "a context of " << run.capacity << " tokens needs "
                                 << gigabytes(states + work) << " of memory (" << gigabytes(states)
                                 << " for what its tokens leave behind, " << gigabytes(work)
                                 << " while it is read), and " << gigabytes(*there)
                                 << " are free; shorten the context, or free some memory";
  return makeError(text);
}
