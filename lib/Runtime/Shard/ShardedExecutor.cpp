// A rank's executor: its stage, and what the others know of it.
#include "lib/Runtime/Shard/ShardedExecutor.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "lib/Runtime/Parts.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace ctxc;

llvm::Error RankExecutor::create() {
  for (const Stage &stage : stages) {
    Program part = program;
    part.steps.assign(program.steps.begin() + stage.first, program.steps.begin() + stage.end);
    names.emplace_back(part);
  }
  if (llvm::Error error = shareBlocks())
    return error;
  if (!onRanks.device && onRanks.number == 0)
    return makeLocal();
  // Devices find each other, and a second executor is made when it is used: ranks other than 0 make
  // theirs when it asks for them.
  if (ranks.rank() != 0)
    return llvm::Error::success();
  if (llvm::Error error = sendToAll(begin(Request::Begin)))
    return error;
  Link::Call call(link, lastCall);
  llvm::Error own = makeLocal();
  if (llvm::Error error = call.finish())
    return lost(std::move(error), std::move(own));
  return settle(std::move(own), [](int, MessageReader &) {});
}

llvm::Error RankExecutor::makeLocal() {
  llvm::Expected<std::unique_ptr<Executor>> made = onRanks.device ? makeOnDevice() : makeCompiled();
  if (!made)
    return made.takeError();
  local = std::move(*made);
  local->setInterrupt([this] { return llvm::errorToBool(checkInterrupt()); });
  local->setProgress([this](int64_t done, int64_t all) { tell(done, all, /*chunk=*/0); });
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>> RankExecutor::makeCompiled() {
  options.local = blocks.get();
  options.stage = stages[stageOf(ranks.rank())];
  options.stages = stages.size();
  options.neighbours = &link;
  // Ranks on one machine share its cores.
  if (options.threads == 0)
    options.threads = std::max(1, threadCount(0) / ranks.onThisMachine());
  llvm::Expected<std::unique_ptr<Executor>> made =
      createCompiledExecutor(program, weights, options);
  if (made)
    patchChunk = [&executor = static_cast<CompiledExecutor &>(**made)](
                     const PatchEachOptions &each) { return executor.patchChunk(each); };
  return made;
}

llvm::Expected<std::unique_ptr<Executor>> RankExecutor::makeOnDevice() {
  patchChunk = [](const PatchEachOptions &each) { return each.chunk; };
  auto opened = Device::open(onRanks.device->target, ranks.numberOnThisMachine());
  if (!opened)
    return opened.takeError();
  GpuOptions onDevice;
  onDevice.roundedPrompts = options.prompts == PromptProducts::Rounded;
  onDevice.share = {blocks.get(), &link, stages[stageOf(ranks.rank())]};
  if (ranks.rank() == 0)
    onDevice.onHosts = onRanks.device->onHosts;
  return createGpuExecutor(program, weights, std::move(*opened), onDevice);
}

/// Cuts the model's blocks.
llvm::Error RankExecutor::shareBlocks() {
  if (tensor == 1)
    return llvm::Error::success();
  ModuleOp module = program.module;
  const int own = ranks.rank() % tensor;
  blocks = std::make_unique<shard::LocalBlocks>(*module.getContext(), own, tensor);
  // Of all stages, so that every rank refuses what one refuses.
  return onRanks.hasPieces ? blocks->addPieces(program) : blocks->add(program);
}

int64_t RankExecutor::ownBytes() const {
  const Stage &stage = stages[stageOf(ranks.rank())];
  if (!blocks)
    return stage.bytes;
  double bytes = 0;
  for (size_t i = stage.first; i < stage.end; ++i) {
    xf::BlockOp block = program.steps[i].block;
    for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
      bytes += blocks->shareOf(block, param) * double(bytesRead(param));
  }
  return int64_t(bytes);
}

std::vector<ElementRun> RankExecutor::elementsOf(StringRef parameter) const {
  for (const ProgramStep &step : program.steps) {
    const shard::LocalBlock *local = blocks ? blocks->find(step.block) : nullptr;
    if (!local)
      continue;
    xf::LayerOp layer = step.layer;
    for (const auto &entry : local->sources) {
      const shard::LocalSource &source = entry.second;
      const std::string stored = layer.getStoredName(source.name);
      if (stored == parameter)
        return runsOf(source.cut, blocks->rank());
      if (sliceIndex(stored, parameter)) // of itself
        return runsOf(cutOfSlice(source.cut, source.whole.getDimSize(0)), blocks->rank());
    }
  }
  return {};
}

RankFacts RankExecutor::ownFacts() const {
  const Stage &stage = stages[stageOf(ranks.rank())];
  RankFacts facts;
  auto layersBefore = [&](size_t end) {
    return llvm::count_if(ArrayRef(program.steps).take_front(end),
                          [](const ProgramStep &step) { return step.index.has_value(); });
  };
  facts.firstLayer = layersBefore(stage.first);
  facts.endLayer = layersBefore(stage.end);
  facts.weightBytes = ownBytes();
  facts.residentBytes = residentMemory().value_or(0);
  facts.streamBytes = link.sentBytes();
  facts.sharedBytes = link.sharedBytes();
  facts.sentBytes = ranks.sentBytes();
  return facts;
}

llvm::Expected<std::unique_ptr<ShardedExecutor>>
ctxc::createShardedExecutor(const Program &program, Weights &weights, CompiledOptions options,
                            Ranks &ranks, const RankOptions &onRanks) {
  llvm::Expected<std::vector<Stage>> stages =
      cutIntoStages(program, ranks.count() / onRanks.tensor);
  if (!stages)
    return stages.takeError();
  auto executor = std::make_unique<RankExecutor>(program, weights, std::move(*stages), ranks,
                                                 std::move(options), onRanks);
  if (llvm::Error error = executor->create())
    return std::move(error);
  return executor;
}
