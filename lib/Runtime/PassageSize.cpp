// How much memory a passage takes, before anything of it is computed.
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Runtime/Passage.h"
#include "lib/Runtime/CompiledExecutor.h"

using namespace mlir;
using namespace ctxc;

static uint64_t bytesOfValue(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() * sizeof(float) : 0;
}

uint64_t Passage::bytesPerToken(const StepKernels &kernels) {
  uint64_t bytes = 0;
  if (KernelCalls *calls = kernels.calls())
    for (size_t step = 0; step < kernels.program.steps.size(); ++step)
      bytes += calls->sizeOf(step, 1, 1).slot;
  return bytes;
}

PassageSize Passage::sizeOf(const StepKernels &kernels, ArrayRef<PassageSequence> sequences) {
  uint64_t rows = 0, slots = 0;
  int64_t longest = 0, most = 0; // with what it follows, and by itself
  std::vector<int64_t> seen;     // by each
  for (const PassageSequence &sequence : sequences) {
    const int64_t size = sequence.tokens.size();
    seen.push_back((sequence.entries ? sequence.entries->count() : size) +
                   (sequence.after ? seen[*sequence.after] : 0));
    rows += size;
    slots += seen.back();
    longest = std::max(longest, seen.back());
    most = std::max(most, size);
  }
  ArrayRef<ProgramStep> steps = kernels.program.steps;
  auto readsLater = [&](Value value, size_t step) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto number = kernels.numbers.find(user);
      return number != kernels.numbers.end() && number->second > step;
    });
  };
  auto sizeOfStep = [&](size_t step, int64_t rows, int64_t room) {
    KernelCalls *calls = kernels.calls();
    return calls ? calls->sizeOf(step, rows, room) : KernelCalls::StepSize();
  };
  PassageSize size;
  for (size_t i = 0, end = kernels.program.head().value_or(steps.size()); i < end; ++i) {
    ProgramStep step = steps[i];
    uint64_t outputs = 0;
    for (Value output : step.layer.getOutputs())
      outputs += rows * bytesOfValue(output);
    size.rest += outputs;
    uint64_t here = 0;
    if (readsContext(step.block)) { // the sequences one after the other
      KernelCalls::StepSize each = sizeOfStep(i, most, longest);
      here = outputs + slots * each.slot + sequences.size() * each.carried + each.work;
    } else {
      here = sizeOfStep(i, rows, 1).work;
    }
    size.most = std::max(size.most, size.rest + here);
    for (Value input : llvm::SmallSetVector<Value, 8>(llvm::from_range, step.layer.getInputs()))
      if (!readsLater(input, i))
        size.rest -= std::min(size.rest, rows * bytesOfValue(input));
  }
  return size;
}
