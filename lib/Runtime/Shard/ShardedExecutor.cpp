// A rank's executor: its stage, and what the others know of it.
#include "lib/Runtime/Shard/ShardedExecutor.h"
#include "ctxc/Support/Memory.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace ctxc;

llvm::Error RankExecutor::create(Weights &weights, CompiledOptions options) {
  for (const Stage &stage : stages) {
    Program part = program;
    part.steps.assign(program.steps.begin() + stage.first, program.steps.begin() + stage.end);
    names.emplace_back(part);
  }
  options.stage = stages[ranks.rank()];
  options.neighbours = &link;
  // Ranks on one machine share its cores.
  if (options.threads == 0)
    options.threads = std::max(1, threadCount(0) / ranks.onThisMachine());
  llvm::Expected<std::unique_ptr<Executor>> made =
      createCompiledExecutor(program, weights, options);
  if (!made)
    return made.takeError();
  local.reset(static_cast<CompiledExecutor *>(made->release()));
  local->setInterrupt([this] {
    llvm::Error error = checkInterrupt();
    const bool isCancelled(error);
    llvm::consumeError(std::move(error));
    return isCancelled;
  });
  local->setProgress([this](int64_t done, int64_t all) { tell(done, all, /*chunk=*/0); });
  return llvm::Error::success();
}

RankFacts RankExecutor::ownFacts() const {
  const Stage &stage = stages[ranks.rank()];
  RankFacts facts;
  auto layersBefore = [&](size_t end) {
    return llvm::count_if(ArrayRef(program.steps).take_front(end),
                          [](const ProgramStep &step) { return step.index.has_value(); });
  };
  facts.firstLayer = layersBefore(stage.first);
  facts.endLayer = layersBefore(stage.end);
  facts.weightBytes = stage.bytes;
  facts.residentBytes = residentMemory().value_or(0);
  facts.streamBytes = link.sentBytes();
  facts.sentBytes = ranks.sentBytes();
  return facts;
}

llvm::Expected<std::unique_ptr<ShardedExecutor>>
ctxc::createShardedExecutor(const Program &program, Weights &weights, CompiledOptions options,
                            Ranks &ranks) {
  llvm::Expected<std::vector<Stage>> stages = cutIntoStages(program, ranks.count());
  if (!stages)
    return stages.takeError();
  auto executor = std::make_unique<RankExecutor>(program, std::move(*stages), ranks);
  if (llvm::Error error = executor->create(weights, std::move(options)))
    return std::move(error);
  return executor;
}
