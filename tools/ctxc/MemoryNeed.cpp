#include "MemoryNeed.h"
#include "ctxc/Program/StepChecks.h"
#include "tools/CommandLine/ModelArguments.h"

using namespace ctxc;
using namespace ctxc::driver;

/// What a compiler and a model's kernels take, at most, while they are made.
static constexpr uint64_t kernelBytes = 300 << 20;

uint64_t MemoryNeed::total() const {
  uint64_t sum = materialized + kernels;
  for (const Weights &each : weights)
    sum += each.bytes;
  return sum;
}

llvm::Expected<MemoryNeed> driver::memoryNeed(Model &model, llvm::ArrayRef<std::string> dtypes) {
  MemoryNeed need;
  need.kernels = kernelBytes;
  const Checkpoint *checkpoint = model.checkpoint();
  if (!checkpoint || !model.options().weights.isModelsOwn())
    return need;
  llvm::Expected<const Program &> program = model.program();
  if (!program)
    return program.takeError();
  std::optional<DType> stored = storedType(*checkpoint);
  for (const std::string &dtype : dtypes) {
    bool asStored = dtype.empty() || storageNamed(dtype) == stored;
    MemoryNeed::Weights weights{dtype.empty() ? "stored" : dtype, 0, asStored};
    for (const TensorView &tensor : checkpoint->tensors())
      weights.bytes += asStored ? tensor.bytes : bytesOf(storageNamed(dtype), tensor.elements());
    need.weights.push_back(weights);
  }
  llvm::StringSet<> patched = loadableNames(*program);
  for (const TensorView &tensor : checkpoint->tensors())
    if (patched.contains(tensor.name))
      need.materialized += bytesOf(DType::BF16, tensor.elements());
  return need;
}
