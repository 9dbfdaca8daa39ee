// A rank's parts of what kernels read: of stored tensors, of settings, and of patches.
#ifndef CTXC_LIB_RUNTIME_PARTS_H
#define CTXC_LIB_RUNTIME_PARTS_H

#include "ctxc/Program/Weights.h"
#include "ctxc/Shard/LocalBlock.h"
#include "ctxc/Support/LargePages.h"
#include "lib/Runtime/KernelArguments.h"
#include <map>

namespace ctxc {

/// Rank `rank`'s part of a tensor, or of the entry `slice` of its first dimension, of which `cut`
/// is the cut.
inline std::vector<ElementRun> runsOf(const shard::Cut &cut, int64_t rank, int64_t slice = 0) {
  std::vector<ElementRun> runs;
  cut.visitRuns(rank, [&](int64_t inWhole, int64_t, int64_t count) {
    runs.push_back({slice * cut.wholeSize() + inWhole, count});
  });
  return runs;
}

/// The cut of each entry of the first dimension, which is whole, of `count`.
inline shard::Cut cutOfSlice(shard::Cut cut, int64_t count) {
  cut.before /= count;
  return cut;
}

/// Parts of tensors that this rank has copied, because their entries do not lie together.
struct PartCopies {
  std::map<std::vector<int64_t>, const void *> known; ///< by where they are copied from
  std::unique_ptr<LargePages> memory = std::make_unique<LargePages>();
};

/// Rank `rank`'s part of the parameter `stored`, in mapped memory or in `copies`. Errors: those of
/// Weights::getPart; scales that are stored in another tensor.
llvm::Expected<const void *> partOfParameter(Weights &weights, llvm::StringRef stored,
                                             const shard::LocalSource &source, int64_t rank,
                                             PartCopies &copies);
/// The same of each matrix of a bank.
llvm::Expected<std::vector<const void *>> partOfBank(Weights &weights, llvm::StringRef stored,
                                                     const shard::LocalSource &source, int64_t rank,
                                                     PartCopies &copies);
std::vector<char> partOfSetting(ProgramStep step, const shard::LocalSource &source, int64_t rank);
void partOfRows(llvm::ArrayRef<float> whole, const shard::Cut &cut, int64_t rank, Rows &part);

/// What a block loads of a patch, whole.
llvm::SmallVector<KernelArg> loadArguments(xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_PARTS_H
