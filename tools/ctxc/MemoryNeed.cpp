#include "MemoryNeed.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/FormatVariadic.h"
#include <unistd.h>

using namespace ctxc;
using namespace ctxc::driver;

/// An upper bound for the memory of the compiler and of a model's kernels while they are compiled.
static constexpr uint64_t kernelBytes = 300 << 20;

namespace {
/// How much memory an experiment's models will need, in bytes.
struct MemoryNeed {
  struct Weights {
    std::string dtype;
    uint64_t bytes = 0;
    bool mapped = false; ///< used where the file stores them; otherwise converted to a copy
  };
  std::vector<Weights> weights;
  uint64_t materialized = 0; ///< copies of the patched parameters, of the widest dtype

  uint64_t total() const {
    uint64_t sum = materialized + kernelBytes;
    for (const Weights &each : weights)
      sum += each.bytes;
    return sum;
  }
};
} // namespace

static llvm::Expected<MemoryNeed> memoryNeed(Model &model, llvm::ArrayRef<std::string> dtypes) {
  MemoryNeed need;
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

uint64_t driver::machineMemory() {
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
}

static std::string gibibytes(uint64_t bytes) {
  double gib = double(bytes) / double(1 << 30);
  return llvm::formatv(gib < 9.95 ? "{0:F2} GiB" : "{0:F0} GiB", gib).str();
}

llvm::Error driver::checkMemory(Model &model, llvm::ArrayRef<std::string> dtypes,
                                uint64_t available) {
  llvm::Expected<MemoryNeed> need = memoryNeed(model, dtypes);
  if (!need)
    return need.takeError();
  err() << "memory: ";
  for (const MemoryNeed::Weights &weights : need->weights)
    err() << weights.dtype << " weights " << gibibytes(weights.bytes)
          << (weights.mapped ? " (as they are stored), " : " (converted), ");
  if (need->materialized)
    err() << "patched copies " << gibibytes(need->materialized) << ", ";
  err() << "kernels " << gibibytes(kernelBytes) << ": up to " << gibibytes(need->total()) << " of "
        << gibibytes(available) << "\n";
  if (need->total() <= available)
    return llvm::Error::success();
  std::string hint = dtypes.size() > 1 ? "; one type at a time, with --dtypes, needs less" : "";
  return makeError(model.name() + ": needs " + gibibytes(need->total()) +
                   " of memory, and there are " + gibibytes(available) + hint);
}
