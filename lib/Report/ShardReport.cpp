#include "ctxc/Report/ShardReport.h"
#include "ctxc/Support/Count.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::shard;

/// "12.3 GB": three digits.
static std::string bytesText(double bytes) {
  const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit)
    bytes /= 1000;
  return llvm::formatv("{0} {1}", llvm::format("%.3g", bytes), units[unit]).str();
}

static std::string timeText(double seconds) {
  return llvm::formatv("{0} ms", llvm::format("%.3g", seconds * 1000)).str();
}

static const char *wordOf(ExchangeKind kind) {
  switch (kind) {
  case ExchangeKind::Sum:
    return "sum";
  case ExchangeKind::Gather:
    return "gather";
  case ExchangeKind::Collect:
    return "collect";
  }
  llvm_unreachable("all kinds are above");
}

static const char *wordOf(Split split) {
  return split.kind == Split::Whole ? "whole" : split.dim == 0 ? "0" : split.dim == 1 ? "1" : "2";
}

/// Which parameters are cut along which dimension.
static void writeCuts(const PartCost &part, llvm::raw_ostream &os) {
  for (int dim = 0; dim < 3; ++dim) {
    std::vector<std::string> names;
    for (const auto &[name, split] : part.split.parameters)
      if (split.kind == Split::Part && split.dim == dim)
        names.push_back(name);
    if (!names.empty())
      os << "  cut along " << dim << "  " << llvm::join(names, ", ") << "\n";
  }
  if (!part.uncut.empty())
    os << "  whole        " << llvm::join(part.uncut, ", ") << "\n";
  auto count = [&](ExchangeKind kind) {
    return llvm::count_if(part.split.exchanges,
                          [&](const Exchange &exchange) { return exchange.kind == kind; });
  };
  os << "  a token      " << counted(count(ExchangeKind::Sum), "sum") << " over ranks, "
     << count(ExchangeKind::Gather) << " gathered";
  if (const auto collected = count(ExchangeKind::Collect))
    os << ", " << collected << " collected on the first";
  os << "; a rank sends " << bytesText(part.sent) << ", reads " << bytesText(part.split.read)
     << "; " << timeText(part.split.seconds) << "\n";
  if (part.sentToPatch != part.sent)
    os << "  its patch    a rank sends " << bytesText(part.sentToPatch) << " to make it ("
       << timeText(part.secondsToPatch) << "), " << bytesText(part.sentPatched)
       << " to run a token with it (" << timeText(part.secondsPatched) << ")\n";
}

void ctxc::writeShardText(const ShardCost &cost, llvm::raw_ostream &os) {
  const ShardRequest &request = cost.request;
  os << counted(request.tensor * request.pipeline, "rank") << ": tensor " << request.tensor
     << ", pipeline " << request.pipeline << "; a token in the full and the reduced run, which see "
     << request.visible[0] << " and " << request.visible[1] << " tokens\n";
  for (const PartCost &part : cost.parts) {
    os << "\n" << part.name;
    if (part.layers)
      os << ", " << counted(part.layers, "layer");
    os << ", on each of " << counted(request.tensor, "rank") << "\n";
    writeCuts(part, os);
  }
  os << "\ngroup  layers            weights       cache        sent        time, of a rank\n";
  for (const auto &[k, stage] : llvm::enumerate(cost.stages)) {
    std::string layers;
    if (stage.layers)
      layers = std::to_string(stage.firstLayer) + "-" +
               std::to_string(stage.firstLayer + stage.layers - 1);
    if (stage.hasHead)
      layers += layers.empty() ? "head" : ", head";
    os << llvm::formatv("{0,5}  {1,-14}{2,11} {3,11} {4,11} {5,11}\n", k, layers,
                        bytesText(stage.stored), bytesText(stage.cache), bytesText(stage.sent),
                        timeText(stage.seconds));
  }
  os << "\na rank stores " << bytesText(cost.storedAtMost()) << " at most; "
     << bytesText(cost.streamBytes) << " pass from group to group\n"
     << "a token takes " << timeText(cost.seconds) << " at the least, "
     << timeText(cost.secondsToPatch) << " to make its patch, and " << timeText(cost.secondsPatched)
     << " to run it with a patch; " << llvm::formatv("{0:F0}", cost.tokensPerSecond)
     << " a second where prompts keep all groups at work\n";
}

void ctxc::writeShardTable(llvm::ArrayRef<ShardCost> costs, llvm::raw_ostream &os) {
  os << "tensor  pipeline  a rank stores  a token takes     sends  tokens a second\n";
  for (const ShardCost &cost : costs) {
    double sent = 0;
    for (const StageCost &stage : cost.stages)
      sent = std::max(sent, stage.sent);
    os << llvm::formatv("{0,6}  {1,8}  {2,13}  {3,13}  {4,8}  {5,15:F0}\n", cost.request.tensor,
                        cost.request.pipeline, bytesText(cost.storedAtMost()),
                        timeText(cost.seconds), bytesText(sent), cost.tokensPerSecond);
  }
}

static void writeJson(const ShardCost &cost, llvm::json::OStream &json) {
  json.attribute("tensor", cost.request.tensor);
  json.attribute("pipeline", cost.request.pipeline);
  json.attribute("seconds", cost.seconds);
  json.attribute("secondsToPatch", cost.secondsToPatch);
  json.attribute("secondsPatched", cost.secondsPatched);
  json.attribute("tokensPerSecond", cost.tokensPerSecond);
  json.attribute("stored", cost.storedAtMost());
  json.attribute("streamBytes", cost.streamBytes);
  json.attributeArray("parts", [&] {
    for (const PartCost &part : cost.parts)
      json.object([&] {
        json.attribute("name", part.name);
        json.attribute("layers", part.layers);
        json.attribute("stored", part.split.stored);
        json.attribute("read", part.split.read);
        json.attribute("operations", part.split.operations);
        json.attribute("sent", part.sent);
        json.attribute("sentToPatch", part.sentToPatch);
        json.attribute("sentPatched", part.sentPatched);
        json.attribute("seconds", part.split.seconds);
        json.attribute("secondsToPatch", part.secondsToPatch);
        json.attribute("secondsPatched", part.secondsPatched);
        json.attributeObject("parameters", [&] {
          for (const auto &[name, split] : part.split.parameters)
            json.attribute(name, wordOf(split));
        });
        json.attributeArray("exchanges", [&] {
          for (const Exchange &exchange : part.split.exchanges)
            json.object([&] {
              json.attribute("kind", wordOf(exchange.kind));
              json.attribute("elements", exchange.elements);
            });
        });
      });
  });
  json.attributeArray("groups", [&] {
    for (const StageCost &stage : cost.stages)
      json.object([&] {
        json.attribute("firstLayer", stage.firstLayer);
        json.attribute("layers", stage.layers);
        json.attribute("head", stage.hasHead);
        json.attribute("stored", stage.stored);
        json.attribute("cache", stage.cache);
        json.attribute("read", stage.read);
        json.attribute("operations", stage.operations);
        json.attribute("sent", stage.sent);
        json.attribute("passed", stage.passed);
        json.attribute("seconds", stage.seconds);
      });
  });
}

void ctxc::writeShardJson(const ShardCost &cost, llvm::ArrayRef<ShardCost> others,
                          llvm::raw_ostream &os) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("format", "ctxc-shard-cost");
    json.attribute("version", 1);
    writeJson(cost, json);
    json.attributeArray("splits", [&] {
      for (const ShardCost &other : others)
        json.object([&] {
          json.attribute("tensor", other.request.tensor);
          json.attribute("pipeline", other.request.pipeline);
          json.attribute("seconds", other.seconds);
          json.attribute("tokensPerSecond", other.tokensPerSecond);
          json.attribute("stored", other.storedAtMost());
        });
    });
  });
  os << "\n";
}
