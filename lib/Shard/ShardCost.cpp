#include "ctxc/Shard/ShardCost.h"
#include "ctxc/Shard/Balance.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "lib/Shard/Shapes.h"
#include "lib/Shard/Soonest.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

/// Both runs of Algorithm 1: each layer's weights are read once for the two.
static constexpr int64_t streams = 2;

double ShardCost::storedAtMost() const {
  double most = 0;
  for (const StageCost &stage : stages)
    most = std::max(most, stage.stored + stage.cache);
  return most;
}

/// The bytes that a rank sends for a block whose parameters are split like this, and the seconds
/// that it takes.
static std::pair<double, double> sentFor(xf::BlockOp block, const PartCost &part, int64_t ofStreams,
                                         const ShardRequest &request, RegionRole role) {
  double bytes = 0;
  const RegionSplit split = splitRegionAs(block.getBody().front(), request.tensor, ofStreams,
                                          request.machine, part.split.parameters, role);
  for (const Exchange &exchange : split.exchanges)
    bytes += bytesSent(exchange, request.tensor, ofStreams);
  return {bytes, split.seconds};
}

/// What a step's blocks cost. `role` is the plain one's.
static PartCost partOf(const ProgramStep &step, const ShardRequest &request, RegionRole role) {
  xf::BlockOp block = step.block;
  mlir::Block &body = block.getBody().front();
  PartCost part;
  part.name = block.getSymName().str();
  part.split = splitRegion(body, request.tensor, streams, request.machine, role);
  std::tie(part.sent, part.secondsToPatch) = sentFor(block, part, streams, request, role);
  part.sentToPatch = part.sent;
  std::tie(part.sentPatched, part.secondsPatched) = sentFor(block, part, 1, request, role);
  if (step.dual) { // which has both runs' values
    std::tie(part.sentToPatch, part.secondsToPatch) = sentFor(step.dual, part, 1, request, role);
    std::tie(part.sentPatched, part.secondsPatched) = sentFor(step.applied, part, 1, request, role);
  }
  if (request.tensor > 1)
    for (xf::ParamOp param : body.getOps<xf::ParamOp>())
      if (llvm::cast<RankedTensorType>(param.getType()).getRank() > 1 &&
          part.split.parameters.at(param.getName().str()).kind == Split::Whole &&
          !llvm::is_contained(part.uncut, param.getName()))
        part.uncut.push_back(param.getName().str());
  return part;
}

/// The bytes of a rank's state in the runs that see `tokens`: a layer with a window reads no more
/// than it.
static double cacheOf(const ProgramStep &step, const RegionSplit &split, ArrayRef<int64_t> tokens) {
  xf::LayerOp layer = step.layer;
  xf::BlockOp block = step.block;
  double bytes = 0;
  block.walk([&](xf::ContextualOpInterface op) {
    int64_t window = 0;
    if (auto attention = llvm::dyn_cast<xf::AttentionOp>(op.getOperation()))
      if (attention.getWindow())
        if (auto setting = attention.getWindow().getDefiningOp<xf::SettingOp>())
          if (auto value = llvm::dyn_cast_or_null<IntegerAttr>(layer.getSettingValue(setting)))
            window = value.getInt();
    if (RankedTensorType carried = op.getCarried()) { // whatever the number of tokens
      for (size_t run = 0; run < tokens.size(); ++run)
        bytes += double(carried.getNumElements()) * sizeof(float);
      return;
    }
    window = op.getReach().value_or(window);
    for (Value state : op.getStateOperands()) {
      auto found = split.values.find(state);
      bool isPart = found != split.values.end() && found->second.kind == Split::Part;
      for (int64_t visible : tokens)
        bytes += elementsOf(state) * sizeof(float) *
                 double(window ? std::min(window, visible) : visible) /
                 (isPart ? double(split.ranks) : 1);
    }
  });
  return bytes;
}

static void add(StageCost &stage, const PartCost &part, double cache, double ofReduced,
                const Machine &machine) {
  stage.stored += part.split.stored;
  stage.read += part.split.read;
  stage.operations += part.split.operations;
  stage.sent += part.sent;
  stage.cache += cache;
  stage.seconds += part.split.seconds + cache / machine.bandwidth;
  stage.secondsToPatch += part.secondsToPatch + cache / machine.bandwidth;
  stage.secondsPatched += part.secondsPatched + ofReduced / machine.bandwidth;
}

/// The bytes of one run's values that ops before `layer` compute and it or later ones read.
static double bytesAcross(xf::LayerOp layer) {
  double bytes = 0;
  for (Operation *op = layer->getPrevNode(); op; op = op->getPrevNode()) {
    const bool isStored = isa<xf::ParamOp, xf::SettingOp>(op); // every group has its own
    for (Value value : op->getResults())
      if (!isStored && llvm::isa<RankedTensorType>(value.getType()) &&
          llvm::any_of(value.getUsers(),
                       [&](Operation *user) { return !user->isBeforeInBlock(layer); }))
        bytes += elementsOf(value) * sizeof(float);
  }
  return bytes;
}

/// Where the model's ends are one and the same table, a group that has both has it once.
static double tiedBytes(const Program &program, ArrayRef<PartCost> parts,
                        ArrayRef<size_t> partOfStep) {
  std::map<std::string, double> first;
  double tied = 0;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (step.index)
      continue;
    xf::BlockOp block = step.block;
    xf::LayerOp layer = step.layer;
    const RegionSplit &split = parts[partOfStep[i]].split;
    for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>()) {
      const bool isPart = split.parameters.at(param.getName().str()).kind == Split::Part;
      const double bytes = bytesOf(param) / double(isPart ? split.ranks : 1);
      auto [known, isNew] = first.try_emplace(layer.getStoredName(param.getName()), bytes);
      if (!isNew)
        tied += std::min(known->second, bytes);
    }
  }
  return tied;
}

/// The bytes of a step's parameters, without tables of which a token reads one row.
static double bytesOfStep(const ProgramStep &step) {
  xf::BlockOp block = step.block;
  double bytes = 0;
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
    if (!llvm::all_of(param->getUsers(), [](Operation *user) { return isa<xf::EmbedOp>(user); }))
      bytes += bytesOf(param);
  return bytes;
}

/// How many steps there are up to the end of each of `count` groups: what stands before the first
/// layer goes with it, and any other step may begin a group.
static std::vector<size_t> endsOfGroups(const Program &program, size_t count) {
  const size_t front =
      llvm::find_if(program.steps, [](const ProgramStep &step) { return step.index.has_value(); }) -
      program.steps.begin();
  std::vector<double> bytes(1);
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (i > front)
      bytes.push_back(0);
    bytes.back() += bytesOfStep(step);
  }
  std::vector<size_t> ends = leastLargest(bytes, count);
  for (size_t &end : ends)
    end += front;
  return ends;
}

llvm::Expected<ShardCost> shard::costOf(const Program &program, const ShardRequest &request) {
  if (request.pipeline > program.layers)
    return makeError("pipeline=" + llvm::Twine(request.pipeline) + ": the model has " +
                     counted(program.layers, "layer") + "; expected no more groups than layers");
  ShardCost cost;
  cost.request = request;
  const Machine &machine = request.machine;
  // Steps with the same blocks cost the same, but for their caches.
  std::map<std::pair<Operation *, Operation *>, size_t> numbers;
  std::vector<size_t> partOfStep;
  std::vector<double> caches, ofReduced;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    auto [number, isNew] = numbers.try_emplace({step.block, step.dual}, cost.parts.size());
    if (isNew) {
      RegionRole role = {Evenness::Uneven, program.head() == i};
      if (step.index) { // whose attention is whole where it cannot be shared
        xf::BlockOp layer = step.block;
        auto ofLayer = roleOfLayer(layer.getBody().front(), request.tensor);
        role = ofLayer ? *ofLayer : RegionRole();
        llvm::consumeError(ofLayer.takeError());
      }
      cost.parts.push_back(partOf(step, request, role));
    }
    partOfStep.push_back(number->second);
    PartCost &part = cost.parts[number->second];
    part.layers += step.index.has_value();
    caches.push_back(cacheOf(step, part.split, request.visible));
    ofReduced.push_back(cacheOf(step, part.split, request.visible[1]));
  }
  size_t step = 0;
  for (size_t end : endsOfGroups(program, request.pipeline)) {
    StageCost stage;
    if (!cost.stages.empty())
      stage.firstLayer = cost.stages.back().firstLayer + cost.stages.back().layers;
    for (; step < end; ++step) {
      add(stage, cost.parts[partOfStep[step]], caches[step], ofReduced[step], machine);
      stage.layers += program.steps[step].index.has_value();
      stage.hasHead |= program.head() == step;
    }
    if (end < program.steps.size())
      stage.passed = streams * bytesAcross(program.steps[step].layer);
    cost.streamBytes = std::max(cost.streamBytes, stage.passed);
    cost.stages.push_back(stage);
  }
  if (cost.stages.size() == 1)
    cost.stages.front().stored -= tiedBytes(program, cost.parts, partOfStep);
  double pass = machine.latency + cost.streamBytes / machine.network, slowest = 0;
  for (const StageCost &stage : cost.stages) {
    cost.seconds += stage.seconds;
    cost.secondsToPatch += stage.secondsToPatch;
    cost.secondsPatched += stage.secondsPatched;
    slowest = std::max(slowest, stage.seconds);
  }
  cost.seconds += double(request.pipeline - 1) * pass;
  cost.secondsToPatch += double(request.pipeline - 1) * pass;
  cost.secondsPatched += double(request.pipeline - 1) *
                         (machine.latency + cost.streamBytes / streams / machine.network);
  cost.tokensPerSecond = 1 / std::max(slowest, request.pipeline > 1 ? pass : 0);
  return cost;
}

llvm::Expected<std::vector<ShardCost>> shard::costsOf(const Program &program, int64_t ranks,
                                                      const ShardRequest &request) {
  std::vector<ShardCost> costs;
  for (int64_t pipeline = 1; pipeline <= std::min(ranks, program.layers); ++pipeline) {
    if (ranks % pipeline)
      continue;
    ShardRequest each = request;
    each.pipeline = pipeline;
    each.tensor = ranks / pipeline;
    auto cost = costOf(program, each);
    if (!cost)
      return cost.takeError();
    costs.push_back(std::move(*cost));
  }
  keepSoonest(costs, [](const ShardCost &cost) { return cost.seconds; }, costs.size());
  return costs;
}
