#include "OtherMatrices.h"
#include "Random.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

/// Uniform numbers with mean 0 and mean square 1 / `inputs`.
static std::vector<float> randomNumbers(int64_t count, int64_t inputs, uint64_t stream) {
  Random random(0, stream);
  std::vector<float> numbers(count);
  for (float &x : numbers)
    x = float((2 * random.uniform() - 1) * std::sqrt(3.0 / inputs));
  return numbers;
}

std::vector<MatrixChange> ctxc::changesOfOthers(const SplitModel &model, int64_t rank) {
  std::vector<MatrixChange> changes;
  const Program &program = model.split.program;
  llvm::StringSet<> known;
  for (const SplitSite &site : model.split.sites)
    known.insert(site.matrix);
  for (size_t step = model.split.sites.front().step + 1; step < program.head().value_or(0);
       ++step) {
    xf::LayerOp layer = program.steps[step].layer;
    xf::BlockOp block = program.steps[step].block;
    for (auto linear : block.getBody().front().getOps<xf::LinearOp>()) {
      auto param = linear.getWeight().getDefiningOp<xf::ParamOp>();
      auto type = cast<RankedTensorType>(linear.getWeight().getType());
      if (!param || type.getRank() != 2)
        continue;
      std::string name = layer.getStoredName(param.getName());
      if (!known.insert(name).second)
        continue;
      const int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
      MatrixChange change{name, rows, columns, rank, {}, {}, linear.getTransposed()};
      // What reads the inputs is random, what writes is zero.
      change.left.assign(rows * rank, 0);
      change.right.assign(rank * columns, 0);
      std::vector<float> &reads = linear.getTransposed() ? change.left : change.right;
      reads = randomNumbers(reads.size(), linear.getTransposed() ? rows : columns, changes.size());
      changes.push_back(std::move(change));
    }
  }
  return changes;
}
