#include "ctxc/Verify/Verify.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Verify/GivenRun.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

namespace {

/// The full and the reduced run of one executor.
struct Runs {
  std::unique_ptr<Run> full, reduced;
};

/// Fills the full run with the context, unless that is filled later, and the reduced run with the
/// kept tokens, unpatched.
Expected<Runs> prefill(Executor &executor, const RunRequest &request, int64_t count,
                       RunTimes &times, bool context = true) {
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

double largestDifference(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0, count = std::min(a.size(), b.size()); i < count; ++i)
    worst = std::max(worst, std::isfinite(a[i] - b[i]) ? std::fabs(a[i] - b[i])
                                                       : std::numeric_limits<double>::infinity());
  return worst;
}

/// One token's three runs, by one executor and, for a trace, by a second.
class Verifier {
public:
  Verifier(Executor &executor, const RunRequest &request, PatchNorms &norms)
      : executor(executor), request(request), norms(norms) {}

  Error start(int64_t count) {
    Timer watch(times.prefill);
    if (Error error = checkRequest(request, executor, count))
      return error;
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

  /// For patches that come from another pass: an empty reduced run.
  void startAlone() { runs.reduced = executor.start(request.kept.size() + 1); }

  /// Runs the kept tokens before `position` that have not been run.
  Error keepBefore(int64_t position) {
    llvm::ArrayRef<int64_t> kept = request.kept;
    for (int64_t held;
         held = runs.reduced->size(), held < int64_t(kept.size()) && kept[held] < position;) {
      Timer watch(times.prefill);
      auto logits =
          executor.forward(*runs.reduced, llvm::ArrayRef<Input>(request.tokens[kept[held]]),
                           kept[held], ForwardOptions());
      if (!logits)
        return logits.takeError();
      ++times.tokens.prefill;
    }
    return Error::success();
  }

  Expected<PatchStep> patch(const Input &token, int64_t position) {
    Timer watch(times.patch);
    ++times.tokens.patch;
    PatchOptions options;
    options.startLayer = request.startLayer;
    options.materialize = request.materialize;
    if (request.trace)
      options.fullObserver = seen.full.observer();
    return executor.patch(*runs.full, *runs.reduced, token, position, options);
  }

  /// The two runs without context, compared with the full run's logits. `replayError`: as the pass
  /// that made the patch predicts it.
  Expected<VerifyStep> check(const Input &token, int64_t position, const Patch &patch,
                             llvm::ArrayRef<double> fullLogits, llvm::ArrayRef<double> fusedLogits,
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
    step.patched = compareLogits(fullLogits, *patched);
    step.control = compareLogits(fullLogits, *control);
    step.next = step.patched.baselineToken;
    step.allowedLinf = allowed(step, fullLogits, replayError);
    if (!fusedLogits.empty())
      step.fusedLinf = largestDifference(*patched, fusedLogits);
    Expected<PatchNormTable> table = measure(patch, executor.layers(), norms);
    if (!table)
      return table.takeError();
    step.norm = table->total;
    for (const PatchNorm &norm : table->layers)
      step.layers.push_back({norm, {}, 0});
    return step;
  }

  RunTimes times;

private:
  Expected<std::vector<double>> reduced(const Input &token, int64_t position, const Patch *patch,
                                        double &seconds, LayerRecord &record,
                                        StreamSizes *sizes = nullptr) {
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
  double allowed(const VerifyStep &step, llvm::ArrayRef<double> fullLogits,
                 llvm::ArrayRef<double> replayError) const {
    const std::vector<double> exact(replayError.size(), 0);
    double least = allowedLinf(fullLogits, exact, sizes, request.roundoffs);
    double predicted = allowedLinf(fullLogits, replayError, sizes, request.roundoffs);
    double most = std::max(least, step.control.linf);
    return predicted < most ? predicted : most;
  }

  Error trace(const Input &token, int64_t position, const Patch &patch) {
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

  Executor &executor;
  const RunRequest &request;
  PatchNorms &norms;
  Runs runs, secondRuns;
  StreamSizes sizes; ///< of the patched run
  struct {
    LayerRecord full, patched, control;
  } seen;
};

/// What the pass that made the patch reports of its layers.
void addLayers(VerifyStep &step, llvm::ArrayRef<LayerObligations> obligations,
               llvm::ArrayRef<double> replayError) {
  for (size_t layer = 0; layer < step.layers.size(); ++layer) {
    if (layer < obligations.size())
      step.layers[layer].obligations = obligations[layer];
    if (layer < replayError.size())
      step.layers[layer].replayError = replayError[layer];
  }
}

/// Gives `sink` the patches of the request's positions, and adds the time that this takes, without
/// the time in the sink, to `seconds`. The full run is `given`, or else one of its own.
Error patchPositions(Executor &executor, const RunRequest &request, PatchEachOptions options,
                     RunTimes &times, PatchSink sink, Run *given) {
  Runs runs;
  llvm::ArrayRef<Input> tokens = request.tokens;
  llvm::ArrayRef<int64_t> wanted = request.positions;
  {
    Timer watch(times.prefill);
    Expected<Runs> made = prefill(executor, request, 1, times, /*context=*/false);
    if (!made)
      return made.takeError();
    runs = std::move(*made);
  }
  Run &full = given ? *given : *runs.full;
  options.startLayer = request.startLayer;
  std::vector<int64_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  llvm::ArrayRef<int64_t> positions = all;
  while (!wanted.empty()) {
    int64_t held = full.size(), first = wanted.front();
    if (first > held) {
      Timer watch(times.prefill);
      auto logits = executor.forward(full, tokens.slice(held, first - held),
                                     positions.slice(held, first - held), ForwardOptions());
      if (!logits)
        return logits.takeError();
      times.tokens.prefill += first - held;
    }
    size_t count = 1;
    while (count < wanted.size() && wanted[count] == wanted[count - 1] + 1)
      ++count;
    double inSink = 0;
    Error error = Error::success();
    {
      Timer watch(times.patch);
      error = executor.patchEach(full, *runs.reduced, tokens.slice(first, count),
                                 positions.slice(first, count), options,
                                 [&](const TokenPatch &given) -> Error {
                                   Timer other(inSink);
                                   return sink(given);
                                 });
    }
    times.patch -= inSink;
    if (error)
      return error;
    times.tokens.patch += count;
    wanted = wanted.drop_front(count);
  }
  return Error::success();
}

/// What both forms of ctxc::verifyEach do. The full run is `given`, or else one of its own.
Error verifyPositions(Executor &executor, const RunRequest &request, Run *given, PatchNorms &norms,
                      RunTimes &times, PatchSource stored, VerifiedPatch take) {
  if (Error error = checkRequest(request, executor))
    return error;
  Verifier verifier(executor, request, norms);
  verifier.startAlone();
  PatchEachOptions options;
  options.logits = true;
  Error error = patchPositions(
      executor, request, options, verifier.times,
      [&](const TokenPatch &given) -> Error {
        Expected<Patch> patch = stored ? stored(given.position) : given.patch();
        if (!patch)
          return patch.takeError();
        if (Error error = verifier.keepBefore(given.position))
          return error;
        Expected<VerifyStep> step = verifier.check(
            request.tokens[given.position], given.position, *patch, given.fullLogits.doubles(),
            stored ? std::vector<double>() : given.reducedLogits.doubles(), given.replayError);
        if (!step)
          return step.takeError();
        if (!stored)
          addLayers(*step, given.obligations, given.replayError);
        return take(*step, *patch);
      },
      given);
  times = verifier.times;
  return error;
}

} // namespace

Expected<VerifyResult> ctxc::verifyEach(Executor &executor, const RunRequest &request,
                                        PatchNorms &norms, StepObserver observe,
                                        PatchSource stored) {
  VerifyResult result;
  Error error = verifyPositions(executor, request, /*given=*/nullptr, norms, result.times, stored,
                                [&](const VerifyStep &step, const Patch &) {
                                  observe(step);
                                  result.steps.push_back(step);
                                  return Error::success();
                                });
  if (error)
    return std::move(error);
  return result;
}

Error ctxc::verifyEach(Executor &executor, const RunRequest &request, Run &full, PatchNorms &norms,
                       VerifiedPatch take) {
  RunTimes times;
  return verifyPositions(executor, request, &full, norms, times, /*stored=*/nullptr, take);
}

Error ctxc::makePatches(Executor &executor, const RunRequest &request, RunTimes &times,
                        PatchSink sink) {
  if (Error error = checkRequest(request, executor))
    return error;
  return patchPositions(executor, request, PatchEachOptions(), times, sink, /*given=*/nullptr);
}

Error ctxc::makePatches(Executor &executor, const RunRequest &request, Run &full, PatchSink sink) {
  if (Error error = checkRequest(request, executor))
    return error;
  RunTimes times;
  return patchPositions(executor, request, PatchEachOptions(), times, sink, &full);
}

Expected<VerifyResult> ctxc::verify(Executor &executor, const RunRequest &request, int64_t count,
                                    PatchNorms &norms, StepObserver observe) {
  Verifier verifier(executor, request, norms);
  if (Error error = verifier.start(count))
    return error;
  VerifyResult result;
  Input token = request.tokens.back();
  int64_t position = request.tokens.size() - 1;
  for (int64_t i = 0; i < count; ++i, ++position) {
    Expected<PatchStep> made = verifier.patch(token, position);
    if (!made)
      return made.takeError();
    Expected<VerifyStep> step =
        verifier.check(token, position, made->patch, made->fullLogits.doubles(),
                       made->reducedLogits.doubles(), made->replayError);
    if (!step)
      return step.takeError();
    addLayers(*step, made->obligations, made->replayError);
    observe(*step);
    token = step->next;
    result.steps.push_back(std::move(*step));
    if (token.token() < 0)
      break; // the full run has no largest logit: nothing can follow it
  }
  result.times = verifier.times;
  return result;
}

Expected<VerifyResult> ctxc::verifyPatch(Executor &executor, const RunRequest &request,
                                         const Patch &patch, PatchNorms &norms) {
  Verifier verifier(executor, request, norms);
  if (Error error = verifier.start(1))
    return error;
  Input token = request.tokens.back();
  int64_t position = request.tokens.size() - 1;
  // The patch that is made here is compared with nothing: its pass predicts how exact one can be.
  Expected<PatchStep> full = verifier.patch(token, position);
  if (!full)
    return full.takeError();
  Expected<VerifyStep> step =
      verifier.check(token, position, patch, full->fullLogits.doubles(), {}, full->replayError);
  if (!step)
    return step.takeError();
  VerifyResult result;
  result.steps.push_back(std::move(*step));
  result.times = verifier.times;
  return result;
}

Expected<PatchStep> ctxc::makePatch(Executor &executor, const RunRequest &request,
                                    RunTimes &times) {
  if (Error error = checkRequest(request, executor))
    return error;
  Runs runs;
  {
    Timer watch(times.prefill);
    Expected<Runs> made = prefill(executor, request, 1, times);
    if (!made)
      return made.takeError();
    runs = std::move(*made);
  }
  Timer watch(times.patch);
  ++times.tokens.patch;
  PatchOptions options;
  options.startLayer = request.startLayer;
  options.materialize = request.materialize;
  return executor.patch(*runs.full, *runs.reduced, request.tokens.back(), request.tokens.size() - 1,
                        options);
}
