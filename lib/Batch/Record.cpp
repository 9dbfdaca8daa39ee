#include "Record.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::batch;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static Value number(double value) { return std::isfinite(value) ? Value(value) : Value(nullptr); }

/// All members, without values.
static Object emptyRecord() {
  Object record;
  for (const char *name : {"line",
                           "id",
                           "position",
                           "token",
                           "tokens",
                           "kept",
                           "error",
                           "shard",
                           "matrixNorm",
                           "matrixRelative",
                           "vectorNorm",
                           "vectorRelative",
                           "replayError",
                           "harmless",
                           "harmful",
                           "next",
                           "patchedNext",
                           "unpatchedNext",
                           "verified",
                           "linf",
                           "allowedLinf",
                           "totalVariation",
                           "hellinger",
                           "rankCorrelation",
                           "top1Difference",
                           "unpatchedLinf",
                           "unpatchedTotalVariation",
                           "layerMatrixNorm",
                           "layerMatrixRelative",
                           "layerVectorNorm",
                           "layerVectorRelative",
                           "layerReplayError",
                           "layerHarmless",
                           "layerHarmful"})
    record[name] = nullptr;
  return record;
}

static Object recordOf(const PromptLine &line) {
  Object record = emptyRecord();
  record["line"] = line.number;
  if (line.id)
    record["id"] = *line.id;
  return record;
}

Object batch::errorRecord(const PromptLine &line, std::optional<int64_t> position,
                          llvm::StringRef error) {
  Object record = recordOf(line);
  record["error"] = llvm::json::fixUTF8(error);
  if (position)
    record["position"] = *position;
  return record;
}

static void addMetrics(const VerifyStep &step, Object &record) {
  const TokenMetrics &patched = step.patched, &unpatched = step.control;
  record["verified"] = patched.match && patched.finite && patched.linf <= step.allowedLinf;
  record["linf"] = number(patched.linf);
  record["allowedLinf"] = number(step.allowedLinf);
  record["unpatchedLinf"] = number(unpatched.linf);
  if (step.next < 0) // there is no head, and no token is predicted
    return;
  record["next"] = step.next;
  record["patchedNext"] = patched.token;
  record["unpatchedNext"] = unpatched.token;
  record["totalVariation"] = number(patched.totalVariation);
  record["hellinger"] = number(patched.hellinger);
  record["rankCorrelation"] = number(patched.rankCorrelation);
  record["top1Difference"] = number(patched.top1Difference);
  record["unpatchedTotalVariation"] = number(unpatched.totalVariation);
}

static void addLayers(llvm::ArrayRef<LayerReport> layers, Object &record) {
  auto column = [&](const char *name, auto value) {
    Array values;
    for (const LayerReport &layer : layers)
      values.push_back(value(layer));
    record[name] = std::move(values);
  };
  column("layerMatrixNorm", [](const LayerReport &l) { return number(l.norm.matrix); });
  column("layerMatrixRelative", [](const LayerReport &l) { return number(l.norm.matrixRelative); });
  column("layerVectorNorm", [](const LayerReport &l) { return number(l.norm.vector); });
  column("layerVectorRelative", [](const LayerReport &l) { return number(l.norm.vectorRelative); });
  column("layerReplayError", [](const LayerReport &l) { return number(l.replayError); });
  column("layerHarmless", [](const LayerReport &l) { return Value(l.obligations.harmless); });
  column("layerHarmful", [](const LayerReport &l) { return Value(l.obligations.harmful); });
}

Object batch::stepRecord(const PromptLine &line, const VerifyStep &step) {
  Object record = recordOf(line);
  record["position"] = step.position;
  record["token"] = step.token;
  record["tokens"] = int64_t(line.tokens.size());
  record["kept"] =
      llvm::count_if(line.kept, [&](int64_t position) { return position < step.position; });
  record["matrixNorm"] = number(step.norm.matrix);
  record["matrixRelative"] = number(step.norm.matrixRelative);
  record["vectorNorm"] = number(step.norm.vector);
  record["vectorRelative"] = number(step.norm.vectorRelative);
  LayerObligations zeros;
  double replayError = 0;
  for (const LayerReport &layer : step.layers) {
    zeros.harmless += layer.obligations.harmless;
    zeros.harmful += layer.obligations.harmful;
    replayError = std::max(replayError, layer.replayError);
  }
  record["replayError"] = number(replayError);
  record["harmless"] = zeros.harmless;
  record["harmful"] = zeros.harmful;
  if (line.make.metrics)
    addMetrics(step, record);
  if (line.make.layers)
    addLayers(step.layers, record);
  return record;
}
