#include "ctxc/Verify/Verify.h"
#include <cmath>

using namespace ctxc;

VerifySummary ctxc::summarize(llvm::ArrayRef<VerifyStep> steps) {
  VerifySummary summary;
  auto raise = [](double &worst, double value) { worst = std::max(worst, value); };
  for (const VerifyStep &step : steps) {
    ++summary.steps;
    summary.matches += step.patched.match;
    summary.controlMatches += step.control.match;
    summary.finite &= step.patched.finite;
    raise(summary.worstLinf, step.patched.linf);
    raise(summary.worstTotalVariation, step.patched.totalVariation);
    raise(summary.worstControlLinf, step.control.linf);
    if (summary.steps == 1 || step.control.linf < summary.leastControlLinf)
      summary.leastControlLinf = step.control.linf;
    summary.beyond += step.patched.linf > step.allowedLinf;
    if (summary.steps == 1 ||
        step.patched.linf * summary.nearestAllowed > summary.nearestLinf * step.allowedLinf) {
      summary.nearestLinf = step.patched.linf;
      summary.nearestAllowed = step.allowedLinf;
    }
    if (step.fusedLinf)
      summary.worstFusedLinf = std::max(summary.worstFusedLinf.value_or(0), *step.fusedLinf);
    bool isNumber = !std::isnan(summary.largestPatch.largest);
    if (isNumber && !(step.norm.largest <= summary.largestPatch.largest))
      summary.largestPatch = step.norm;
    raise(summary.largestMatrixNorm, step.norm.matrix);
    raise(summary.largestVectorNorm, step.norm.vector);
    for (const LayerReport &layer : step.layers) {
      raise(summary.largestMatrixRelative, layer.norm.matrixRelative);
      raise(summary.largestVectorRelative, layer.norm.vectorRelative);
      raise(summary.largestReplayError, layer.replayError);
      summary.harmless += layer.obligations.harmless;
      summary.harmful += layer.obligations.harmful;
    }
  }
  return summary;
}

ReplayError ctxc::replayErrorIn(llvm::StringRef type, llvm::ArrayRef<VerifyStep> steps,
                                const std::optional<Sink> &sink) {
  ReplayError largest;
  for (const VerifyStep &step : steps) {
    std::vector<double> errors, norms;
    for (const LayerReport &layer : step.layers) {
      errors.push_back(layer.float32Error);
      norms.push_back(layer.outputNorm);
    }
    largest = larger(largest, replayErrorIn(type, errors, norms, sink));
  }
  return largest;
}

ReplayError ctxc::replayErrorIn(llvm::StringRef type, const PatchStep &step,
                                const StreamSizes &sizes, const std::optional<Sink> &sink) {
  std::vector<double> norms;
  for (size_t layer = 0; layer < step.replayError.size(); ++layer)
    norms.push_back(sizes.norm(layer));
  return replayErrorIn(type, step.replayError, norms, sink);
}
