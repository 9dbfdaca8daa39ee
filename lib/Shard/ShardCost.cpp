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

static PartCost partOf(llvm::StringRef name, mlir::Block &body, const ShardRequest &request) {
  PartCost part;
  part.name = name.str();
  part.split = splitRegion(body, request.tensor, streams, request.machine);
  for (const Exchange &exchange : part.split.exchanges)
    part.sent += bytesSent(exchange, request.tensor, streams);
  if (request.tensor > 1)
    for (xf::ParamOp param : body.getOps<xf::ParamOp>())
      if (llvm::cast<RankedTensorType>(param.getType()).getRank() > 1 &&
          part.split.parameters.at(param.getName().str()).kind == Split::Whole &&
          !llvm::is_contained(part.uncut, param.getName()))
        part.uncut.push_back(param.getName().str());
  return part;
}

/// The bytes of a rank's state in both runs: a layer with a window reads no more than it.
static double cacheOf(xf::LayerOp layer, mlir::Block &body, const RegionSplit &split,
                      const ShardRequest &request) {
  double bytes = 0;
  body.walk([&](xf::ContextualOpInterface op) {
    int64_t window = 0;
    if (auto attention = llvm::dyn_cast<xf::AttentionOp>(op.getOperation()))
      if (attention.getWindow())
        if (auto setting = attention.getWindow().getDefiningOp<xf::SettingOp>())
          if (auto value = llvm::dyn_cast_or_null<IntegerAttr>(layer.getSettingValue(setting)))
            window = value.getInt();
    for (Value state : op.getStateOperands()) {
      auto found = split.values.find(state);
      bool isPart = found != split.values.end() && found->second.kind == Split::Part;
      for (int64_t visible : request.visible)
        bytes += elementsOf(state) * sizeof(float) *
                 double(window ? std::min(window, visible) : visible) /
                 (isPart ? double(split.ranks) : 1);
    }
  });
  return bytes;
}

static void add(StageCost &stage, const PartCost &part, double cache, const Machine &machine) {
  stage.stored += part.split.stored;
  stage.read += part.split.read;
  stage.operations += part.split.operations;
  stage.sent += part.sent;
  stage.cache += cache;
  stage.seconds += part.split.seconds + cache / machine.bandwidth;
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

llvm::Expected<ShardCost> shard::costOf(xf::ModelOp model, const ShardRequest &request) {
  std::vector<xf::LayerOp> layers(model.getBody().getOps<xf::LayerOp>().begin(),
                                  model.getBody().getOps<xf::LayerOp>().end());
  if (request.pipeline > int64_t(layers.size()))
    return makeError("pipeline=" + llvm::Twine(request.pipeline) + ": the model has " +
                     counted(layers.size(), "layer") + "; expected no more groups than layers");
  ShardCost cost;
  cost.request = request;
  const Machine &machine = request.machine;
  llvm::MapVector<xf::BlockOp, PartCost> blocks;
  std::vector<double> caches, seconds;
  for (xf::LayerOp layer : layers) {
    auto block = SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(model, layer.getBlockAttr());
    mlir::Block &body = block.getBody().front();
    if (!blocks.count(block))
      blocks[block] = partOf(block.getSymName(), body, request);
    PartCost &part = blocks[block];
    ++part.layers;
    caches.push_back(cacheOf(layer, body, part.split, request));
    seconds.push_back(part.split.seconds + caches.back() / machine.bandwidth);
  }
  PartCost around = partOf("embedding and head", model.getBody().front(), request);
  // The first group has the embedding and the last the head: the two are counted as the last's.
  if (!seconds.empty())
    seconds.back() += around.split.seconds;
  const std::vector<size_t> groups = leastLargest(seconds, request.pipeline);
  size_t begin = 0;
  for (size_t end : groups) {
    StageCost stage;
    stage.firstLayer = begin;
    stage.layers = end - begin;
    for (size_t i = begin; i < end; ++i) {
      auto block =
          SymbolTable::lookupNearestSymbolFrom<xf::BlockOp>(model, layers[i].getBlockAttr());
      add(stage, blocks[block], caches[i], machine);
    }
    if (end == layers.size())
      add(stage, around, 0, machine);
    else
      stage.passed = streams * bytesAcross(layers[end]);
    cost.streamBytes = std::max(cost.streamBytes, stage.passed);
    cost.stages.push_back(stage);
    begin = end;
  }
  double pass = machine.latency + cost.streamBytes / machine.network, slowest = 0;
  for (const StageCost &stage : cost.stages) {
    cost.seconds += stage.seconds;
    slowest = std::max(slowest, stage.seconds);
  }
  cost.seconds += double(request.pipeline - 1) * pass;
  cost.tokensPerSecond = 1 / std::max(slowest, request.pipeline > 1 ? pass : 0);
  for (auto &[block, part] : blocks)
    cost.parts.push_back(std::move(part));
  cost.parts.push_back(std::move(around));
  return cost;
}

llvm::Expected<std::vector<ShardCost>> shard::costsOf(xf::ModelOp model, int64_t ranks,
                                                      const ShardRequest &request) {
  std::vector<ShardCost> costs;
  auto layers = model.getBody().getOps<xf::LayerOp>();
  int64_t most = std::distance(layers.begin(), layers.end());
  for (int64_t pipeline = 1; pipeline <= std::min(ranks, most); ++pipeline) {
    if (ranks % pipeline)
      continue;
    ShardRequest each = request;
    each.pipeline = pipeline;
    each.tensor = ranks / pipeline;
    auto cost = costOf(model, each);
    if (!cost)
      return cost.takeError();
    costs.push_back(std::move(*cost));
  }
  keepSoonest(costs, [](const ShardCost &cost) { return cost.seconds; }, costs.size());
  return costs;
}
