#include "ctxc/Report/VerifyReport.h"
#include "llvm/Config/llvm-config.h"
#include <cmath>

using namespace ctxc;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

bool ctxc::isVerified(const VerifySummary &summary, const VerifySettings &settings) {
  return summary.verified() && !(settings.tolerance && summary.worstLinf > *settings.tolerance);
}

/// JSON has neither infinity nor NaN.
static Value number(double value) { return std::isfinite(value) ? Value(value) : Value(nullptr); }

static Object metricsJson(const TokenMetrics &metrics, const TokenName &name) {
  return Object{{"token", metrics.token},
                {"text", name.text(metrics.token)},
                {"piece", llvm::json::fixUTF8(name.piece(metrics.token))},
                {"match", metrics.match},
                {"linf", number(metrics.linf)},
                {"totalVariation", number(metrics.totalVariation)},
                {"hellinger", number(metrics.hellinger)},
                {"rankCorrelation", number(metrics.rankCorrelation)},
                {"top1Difference", number(metrics.top1Difference)},
                {"finite", metrics.finite}};
}

static Object normJson(const PatchNorm &norm) {
  return Object{{"matrixNorm", number(norm.matrix)},
                {"matrixRelative", number(norm.matrixRelative)},
                {"vectorNorm", number(norm.vector)},
                {"vectorRelative", number(norm.vectorRelative)}};
}

static Array layersJson(llvm::ArrayRef<LayerReport> layers) {
  Array result;
  for (size_t i = 0; i < layers.size(); ++i) {
    Object layer = normJson(layers[i].norm);
    layer["layer"] = static_cast<int64_t>(i);
    layer["harmless"] = layers[i].obligations.harmless;
    layer["harmful"] = layers[i].obligations.harmful;
    layer["replayError"] = number(layers[i].replayError);
    result.push_back(std::move(layer));
  }
  return result;
}

/// For each layer, the largest norms and replay error of all steps, and all
/// obligations together.
static std::vector<LayerReport> overSteps(llvm::ArrayRef<VerifyStep> steps) {
  std::vector<LayerReport> result;
  auto raise = [](double &worst, double value) { worst = std::max(worst, value); };
  for (const VerifyStep &step : steps) {
    result.resize(std::max(result.size(), step.layers.size()));
    for (size_t i = 0; i < step.layers.size(); ++i) {
      const LayerReport &layer = step.layers[i];
      raise(result[i].norm.matrix, layer.norm.matrix);
      raise(result[i].norm.matrixRelative, layer.norm.matrixRelative);
      raise(result[i].norm.vector, layer.norm.vector);
      raise(result[i].norm.vectorRelative, layer.norm.vectorRelative);
      raise(result[i].replayError, layer.replayError);
      result[i].obligations.harmless += layer.obligations.harmless;
      result[i].obligations.harmful += layer.obligations.harmful;
    }
  }
  return result;
}

static Object stateJson(double linf, double cosine) {
  return Object{{"linf", number(linf)}, {"cosine", number(cosine)}};
}

static Object stepJson(const VerifyStep &step, const RunRequest &request, const TokenName &name) {
  Object result{{"position", step.position},
                {"token", step.token},
                {"text", name.text(step.token)},
                {"piece", llvm::json::fixUTF8(name.piece(step.token))},
                {"allowedLinf", number(step.allowedLinf)},
                {"norm", normJson(step.norm)},
                {"layers", layersJson(step.layers)}};
  if (request.headless) {
    result["patched"] = stateJson(step.patched.linf, step.patchedCosine);
    result["control"] = stateJson(step.control.linf, step.controlCosine);
  } else {
    result["next"] = step.next;
    result["nextText"] = name.text(step.next);
    result["nextPiece"] = llvm::json::fixUTF8(name.piece(step.next));
    result["patched"] = metricsJson(step.patched, name);
    result["control"] = metricsJson(step.control, name);
  }
  if (step.fusedLinf)
    result["fusedLinf"] = number(*step.fusedLinf);
  return result;
}

static Object pooledJson(const PooledText &text) {
  return Object{{"how", describe(text.pooling)},
                {"tokens", text.tokens},
                {"full", Array(text.full)},
                {"patched", stateJson(text.patchedLinf, text.patchedCosine)},
                {"control", stateJson(text.controlLinf, text.controlCosine)}};
}

/// The ids; null where an embedding stands in a token's place.
static Array tokensJson(llvm::ArrayRef<Input> tokens) {
  Array result;
  for (const Input &token : tokens)
    result.push_back(token.isEmbedding() ? Value(nullptr) : Value(token.token()));
  return result;
}

static Object settingsJson(const VerifySettings &settings) {
  const RunRequest &request = settings.request;
  Object result{{"tokens", tokensJson(request.tokens)},
                {"kept", Array(request.kept)},
                {"generate", settings.generate},
                {"update", settings.update},
                {"dtype", settings.dtype},
                {"backend", settings.backend},
                {"threads", settings.threads},
                {"materialize", request.materialize},
                {"startLayer", request.startLayer},
                {"plan", settings.plan}};
  if (!settings.whyKept.empty())
    result["whyKept"] = settings.whyKept;
  if (!request.positions.empty())
    result["positions"] = Array(request.positions);
  if (!settings.embeddingsFile.empty())
    result["embeddings"] = settings.embeddingsFile;
  if (!settings.patchFile.empty())
    result["patch"] = settings.patchFile;
  if (!settings.patchFactors.empty()) {
    result["patchFactors"] = settings.patchFactors;
    result["patchRounding"] = number(settings.patchRounding);
  }
  if (settings.tolerance)
    result["tolerance"] = *settings.tolerance;
  return result;
}

/// The predicted error where the activations are narrow: in a program that stores them in `type`.
static Object replayJson(const VerifySettings &settings, llvm::ArrayRef<VerifyStep> steps) {
  const llvm::StringRef type = settings.replay;
  const ReplayError found = replayErrorIn(type, steps, settings.sink);
  Object result{{"type", type},
                {"error", number(found.error)},
                {"relative", number(found.relative)},
                {"layer", found.layer}};
  if (std::string why = replayWarning(type, found); !why.empty())
    result["warning"] = why;
  return result;
}

static Object summaryJson(const VerifySummary &summary, const VerifySettings &settings) {
  Object result{{"verified", isVerified(summary, settings)},
                {"steps", summary.steps},
                {"matches", summary.matches},
                {"controlMatches", summary.controlMatches},
                {"linf", number(summary.worstLinf)},
                {"beyond", summary.beyond},
                {"nearestLinf", number(summary.nearestLinf)},
                {"nearestAllowed", number(summary.nearestAllowed)},
                {"totalVariation", number(summary.worstTotalVariation)},
                {"controlLinfLeast", number(summary.leastControlLinf)},
                {"controlLinf", number(summary.worstControlLinf)},
                {"matrixNorm", number(summary.largestMatrixNorm)},
                {"matrixRelative", number(summary.largestMatrixRelative)},
                {"vectorNorm", number(summary.largestVectorNorm)},
                {"vectorRelative", number(summary.largestVectorRelative)},
                {"replayError", number(summary.largestReplayError)},
                {"harmless", summary.harmless},
                {"harmful", summary.harmful}};
  if (summary.worstFusedLinf)
    result["fusedLinf"] = number(*summary.worstFusedLinf);
  return result;
}

/// Tokens a second; null where none was run.
static Value rate(int64_t tokens, double seconds) {
  return seconds > 0 ? Value(double(tokens) / seconds) : Value(nullptr);
}

Value ctxc::verifyJson(const VerifyResult &result, const VerifySettings &settings,
                       const SetupTimes &setup, const TokenName &name) {
  Array steps;
  for (const VerifyStep &step : result.steps)
    steps.push_back(stepJson(step, settings.request, name));
  const RunTimes &times = result.times;
  const auto &tokens = times.tokens;
  Array ranks;
  for (const RankFacts &facts : settings.ranks)
    ranks.push_back(Object{{"firstLayer", facts.firstLayer},
                           {"endLayer", facts.endLayer},
                           {"weightBytes", facts.weightBytes},
                           {"residentBytes", facts.residentBytes},
                           {"streamBytes", facts.streamBytes},
                           {"sharedBytes", facts.sharedBytes},
                           {"sentBytes", facts.sentBytes}});
  Object model{{"path", settings.model},
               {"hash", settings.modelHash},
               {"layers", settings.layers},
               {"vocabulary", settings.vocabulary},
               {"head", !settings.request.headless}};
  if (!settings.notCompared.empty())
    model["notCompared"] = settings.notCompared;
  Object whole{{"format", "ctxc-verify"},
               {"version", 1},
               {"versions", Object{{"ctxc", CTXC_VERSION}, {"llvm", LLVM_VERSION_STRING}}},
               {"model", std::move(model)},
               {"settings", settingsJson(settings)},
               {"summary", summaryJson(summarize(result.steps), settings)},
               {"replay", replayJson(settings, result.steps)},
               {"layers", layersJson(overSteps(result.steps))},
               {"steps", std::move(steps)},
               {"ended", result.ended},
               {"ranks", std::move(ranks)},
               {"seconds", Object{{"import", setup.import},
                                  {"plan", setup.plan},
                                  {"compile", setup.compile},
                                  {"prefill", times.prefill},
                                  {"patch", times.patch},
                                  {"verify", times.verify},
                                  {"control", times.control}}},
               {"tokens", Object{{"prefill", tokens.prefill},
                                 {"patch", tokens.patch},
                                 {"verify", tokens.verify},
                                 {"control", tokens.control}}},
               {"tokensPerSecond", Object{{"prefill", rate(tokens.prefill, times.prefill)},
                                          {"patch", rate(tokens.patch, times.patch)},
                                          {"verify", rate(tokens.verify, times.verify)},
                                          {"control", rate(tokens.control, times.control)}}}};
  if (result.pooled)
    whole["pooled"] = pooledJson(*result.pooled);
  return Value(std::move(whole));
}
