// Patches of tokens that follow a context, one after the other, and of a single one.

#include "Verifier.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Verify/GivenRun.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

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
    addLayers(*step, made->obligations, made->replayError, request.roundoffs.program);
    observe(*step);
    token = step->next;
    result.steps.push_back(std::move(*step));
    result.ended = llvm::is_contained(request.stops, token.token());
    if (result.ended || token.token() < 0)
      break; // without a largest logit, nothing can follow either
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
  if (request.sizes)
    options.fullObserver = request.sizes->observer(nullptr);
  return executor.patch(*runs.full, *runs.reduced, request.tokens.back(), request.tokens.size() - 1,
                        options);
}
