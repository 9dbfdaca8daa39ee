// Patches of many positions of a context: made, and verified.

#include "Verifier.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Verify/GivenRun.h"
#include <numeric>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

namespace {

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
          addLayers(*step, given.obligations, given.replayError, request.roundoffs.program);
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
