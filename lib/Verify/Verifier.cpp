#include "Verifier.h"
#include "ctxc/Numerics/StateMetrics.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Verify/GivenRun.h"
#include <cmath>
#include <limits>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

Expected<Runs> ctxc::prefill(Executor &executor, const RunRequest &request, int64_t count,
                             RunTimes &times, bool context) {
  Runs runs{executor.start(request.tokens.size() - 1 + count, Keeps::Seen),
            executor.start(request.kept.size() + 1)};
  if (context) {
    if (Error error = readContext(executor, *runs.full, request.tokens))
      return std::move(error);
    times.tokens.prefill += request.tokens.size() - 1;
  }
  if (request.kept.empty())
    return runs;
  std::vector<Input> keptTokens;
  for (int64_t position : request.kept)
    keptTokens.push_back(request.tokens[position]);
  Expected<std::vector<double>> logits = executor.forward(
      *runs.reduced, llvm::ArrayRef<Input>(keptTokens), request.kept, ForwardOptions());
  if (!logits)
    return logits.takeError();
  times.tokens.prefill += keptTokens.size();
  return runs;
}

static double largestDifference(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0, count = std::min(a.size(), b.size()); i < count; ++i)
    worst = std::max(worst, std::isfinite(a[i] - b[i]) ? std::fabs(a[i] - b[i])
                                                       : std::numeric_limits<double>::infinity());
  return worst;
}

Error Verifier::start(int64_t count) {
  Timer watch(times.prefill);
  if (Error error = checkRequest(request, executor, count))
    return error;
  if (request.headless && count > 1)
    return makeError("tokens to generate: found " + llvm::Twine(count) +
                     ", and the model has no head that would predict them; expected 1");
  Expected<Runs> made = prefill(executor, request, count, times);
  if (!made)
    return made.takeError();
  runs = std::move(*made);
  if (!request.trace || !request.trace->second())
    return Error::success();
  RunTimes ofSecond;
  Expected<Runs> second = prefill(*request.trace->second(), request, count, ofSecond);
  if (!second)
    return second.takeError();
  secondRuns = std::move(*second);
  return Error::success();
}

Error Verifier::keepBefore(int64_t position) {
  llvm::ArrayRef<int64_t> kept = request.kept;
  for (int64_t held;
       held = runs.reduced->size(), held < int64_t(kept.size()) && kept[held] < position;) {
    Timer watch(times.prefill);
    auto logits = executor.forward(*runs.reduced, llvm::ArrayRef<Input>(request.tokens[kept[held]]),
                                   kept[held], ForwardOptions());
    if (!logits)
      return logits.takeError();
    ++times.tokens.prefill;
  }
  return Error::success();
}

Expected<PatchStep> Verifier::patch(const Input &token, int64_t position) {
  Timer watch(times.patch);
  ++times.tokens.patch;
  PatchOptions options;
  options.startLayer = request.startLayer;
  options.materialize = request.materialize;
  sizes.clear();
  if (request.trace)
    options.fullObserver = seen.full.observer();
  options.fullObserver = sizes.observer(std::move(options.fullObserver));
  return executor.patch(*runs.full, *runs.reduced, token, position, options);
}

Expected<VerifyStep> Verifier::check(const Input &token, int64_t position, const Patch &patch,
                                     llvm::ArrayRef<double> fullLogits,
                                     llvm::ArrayRef<double> fusedLogits,
                                     llvm::ArrayRef<double> replayError) {
  ++times.tokens.verify;
  Expected<std::vector<double>> patched =
      reduced(token, position, &patch, times.verify, seen.patched, &sizes);
  if (!patched)
    return patched.takeError();
  Expected<std::vector<double>> control = std::vector<double>();
  if (request.control) {
    ++times.tokens.control;
    control = reduced(token, position, nullptr, times.control, seen.control);
  }
  if (!control)
    return control.takeError();
  if (Error error = trace(token, position, patch))
    return error;

  if (request.logits)
    request.logits(fullLogits, *patched, *control);
  VerifyStep step;
  step.token = token.token();
  step.position = position;
  if (request.headless) {
    step.patched = compareStates(fullLogits, *patched);
    step.control = compareStates(fullLogits, *control);
    step.patchedCosine = cosineOf(fullLogits, *patched);
    step.controlCosine = cosineOf(fullLogits, *control);
  } else {
    step.patched = compareLogits(fullLogits, *patched);
    step.control = compareLogits(fullLogits, *control);
  }
  step.next = step.patched.baselineToken;
  step.allowedLinf = allowed(
      step, std::max(largestMagnitude(fullLogits), largestMagnitude(*patched)), replayError);
  if (!fusedLogits.empty())
    step.fusedLinf = largestDifference(*patched, fusedLogits);
  Expected<PatchNormTable> table = measure(patch, executor.layers(), norms);
  if (!table)
    return table.takeError();
  step.norm = table->total;
  for (const PatchNorm &norm : table->layers)
    step.layers.push_back({norm, {}, 0});
  for (auto [layer, report] : llvm::enumerate(step.layers))
    report.outputNorm = sizes.norm(layer);
  sizes.clear();
  return step;
}

Expected<std::vector<double>> Verifier::reduced(const Input &token, int64_t position,
                                                const Patch *patch, double &seconds,
                                                LayerRecord &record, StreamSizes *sizes) {
  Timer watch(seconds);
  ForwardOptions options;
  options.patch = patch;
  options.materialize = patch && request.materialize;
  options.append = false;
  if (request.trace)
    options.observer = record.observer();
  if (sizes)
    options.observer = sizes->observer(std::move(options.observer));
  return executor.forward(*runs.reduced, llvm::ArrayRef<Input>(token), position, options);
}

/// What is predicted, and no more than the context changes: a patch that brings the logits no
/// nearer than none does is no patch, however large its predicted error.
double Verifier::allowed(const VerifyStep &step, double largestLogit,
                         llvm::ArrayRef<double> replayError) const {
  const std::vector<double> exact(replayError.size(), 0);
  double least = allowedLinf(largestLogit, exact, sizes, request.roundoffs);
  double predicted = allowedLinf(largestLogit, replayError, sizes, request.roundoffs);
  double most = std::max(least, step.control.linf);
  return predicted < most ? predicted : most;
}

Error Verifier::trace(const Input &token, int64_t position, const Patch &patch) {
  Trace *trace = request.trace;
  if (!trace)
    return Error::success();
  trace->add(position, "full", seen.full, "patched", seen.patched);
  trace->add(position, "full", seen.full, "control", seen.control);
  if (!trace->second())
    return Error::success();

  LayerRecord fullRecord, patchedRecord;
  llvm::ArrayRef<Input> one(token);
  ForwardOptions options;
  options.observer = fullRecord.observer();
  auto logits = trace->second()->forward(*secondRuns.full, one, position, options);
  if (!logits)
    return logits.takeError();
  options.observer = patchedRecord.observer();
  options.patch = &patch;
  options.materialize = request.materialize;
  options.append = false;
  logits = trace->second()->forward(*secondRuns.reduced, one, position, options);
  if (!logits)
    return logits.takeError();
  auto name = [](llvm::StringRef executor, const char *run) { return (executor + run).str(); };
  trace->add(position, name(trace->first(), " full"), seen.full,
             name(trace->secondExecutor(), " full"), fullRecord);
  trace->add(position, name(trace->first(), " patched"), seen.patched,
             name(trace->secondExecutor(), " patched"), patchedRecord);
  return Error::success();
}

void ctxc::addLayers(VerifyStep &step, llvm::ArrayRef<LayerObligations> obligations,
                     llvm::ArrayRef<double> replayError, double roundoff) {
  // Of a narrower type, the roundings of the layer's own output count as well, in either run.
  const bool isNarrow = roundoff > float32UnitRoundoff;
  for (auto [layer, report] : llvm::enumerate(step.layers)) {
    if (layer < obligations.size())
      report.obligations = obligations[layer];
    if (layer < replayError.size()) {
      report.float32Error = replayError[layer];
      report.replayError = replayError[layer] * (roundoff / float32UnitRoundoff) +
                           (isNarrow ? 2 * roundoff * report.outputNorm : 0);
    }
  }
}
