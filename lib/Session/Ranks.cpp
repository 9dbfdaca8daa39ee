// A model that several ranks share.
#include "RankNorms.h"
#include "Use.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::Expected;

namespace {

class RankNorms : public PatchNorms {
public:
  RankNorms(std::unique_ptr<PatchNorms> own, ShardedExecutor &executor)
      : own(std::move(own)), executor(executor) {}

  int64_t layerOf(llvm::StringRef parameter) const override { return own->layerOf(parameter); }

protected:
  Expected<double> computeSquaredNorm(llvm::StringRef parameter) override {
    const int first = executor.rankOf(own->layerOf(parameter));
    const bool isShared = !executor.elementsOf(parameter).empty();
    double sum = 0;
    for (int rank = first; rank < first + (isShared ? executor.ranksOfLayer() : 1); ++rank) {
      Expected<double> part =
          rank == 0 ? own->squaredNorm(parameter) : executor.queryRank(rank, parameter);
      if (!part)
        return part;
      sum += *part;
    }
    return sum;
  }

private:
  std::unique_ptr<PatchNorms> own;
  ShardedExecutor &executor;
};

} // namespace

std::unique_ptr<PatchNorms> ctxc::rankNorms(std::unique_ptr<PatchNorms> own,
                                            ShardedExecutor &executor) {
  return std::make_unique<RankNorms>(std::move(own), executor);
}

Expected<ShardedExecutor &> Model::sharded() {
  Expected<Executor &> executor = this->executor();
  if (!executor)
    return executor.takeError();
  // What makeExecutor makes where there are ranks.
  return static_cast<ShardedExecutor &>(*executor);
}

Expected<int> Model::serve() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  Expected<ShardedExecutor &> executor = sharded();
  if (!executor)
    return executor.takeError();
  auto numbered = [&](int64_t number) -> Expected<ShardedExecutor &> {
    if (number == 0)
      return *executor;
    Expected<SplitModel> model = splitModel(/*isAddedTo=*/false);
    if (!model)
      return model.takeError();
    return static_cast<ShardedExecutor &>(*split->elsewhere);
  };
  return serveRanks(*settings.ranks, numbered, [&](llvm::StringRef parameter) -> Expected<double> {
    Expected<PatchNorms &> norms = this->norms();
    if (!norms)
      return norms.takeError();
    return norms->squaredNorm(parameter);
  });
}

Expected<std::vector<RankFacts>> Model::rankFacts() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (!settings.ranks)
    return std::vector<RankFacts>();
  Expected<ShardedExecutor &> executor = sharded();
  return executor ? executor->facts() : executor.takeError();
}
