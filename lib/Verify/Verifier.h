#ifndef CTXC_LIB_VERIFY_VERIFIER_H
#define CTXC_LIB_VERIFY_VERIFIER_H

// A token's runs, with the context, patched without it, and neither, and their comparison.

#include "ctxc/Verify/Verify.h"

namespace ctxc {

/// The full and the reduced run of one executor.
struct Runs {
  std::unique_ptr<Run> full, reduced;
};

/// Fills the full run with the context, unless that is filled later, and the reduced run with the
/// kept tokens, unpatched.
llvm::Expected<Runs> prefill(Executor &executor, const RunRequest &request, int64_t count,
                             RunTimes &times, bool context = true);

/// One token's three runs, by one executor and, for a trace, by a second.
class Verifier {
public:
  Verifier(Executor &executor, const RunRequest &request, PatchNorms &norms)
      : executor(executor), request(request), norms(norms) {}

  llvm::Error start(int64_t count);

  /// For patches that come from another pass: an empty reduced run.
  void startAlone() { runs.reduced = executor.start(request.kept.size() + 1); }

  /// Runs the kept tokens before `position` that have not been run.
  llvm::Error keepBefore(int64_t position);

  llvm::Expected<PatchStep> patch(const Input &token, int64_t position);

  /// The two runs without context, compared with the full run's logits. `replayError`: as the pass
  /// that made the patch predicts it.
  llvm::Expected<VerifyStep> check(const Input &token, int64_t position, const Patch &patch,
                                   llvm::ArrayRef<double> fullLogits,
                                   llvm::ArrayRef<double> fusedLogits,
                                   llvm::ArrayRef<double> replayError);

  RunTimes times;

private:
  llvm::Expected<std::vector<double>> reduced(const Input &token, int64_t position,
                                              const Patch *patch, double &seconds,
                                              LayerRecord &record, StreamSizes *sizes = nullptr);
  double allowed(const VerifyStep &step, double largestLogit,
                 llvm::ArrayRef<double> replayError) const;
  llvm::Error trace(const Input &token, int64_t position, const Patch &patch);

  Executor &executor;
  const RunRequest &request;
  PatchNorms &norms;
  Runs runs, secondRuns;
  StreamSizes sizes; ///< of the patched run and, where it was seen, the full one
  struct {
    LayerRecord full, patched, control;
  } seen;
};

/// What the pass that made the patch reports of its layers; errors are predicted for float32, and
/// given for a program of that unit roundoff.
void addLayers(VerifyStep &step, llvm::ArrayRef<LayerObligations> obligations,
               llvm::ArrayRef<double> replayError, double roundoff);

} // namespace ctxc

#endif // CTXC_LIB_VERIFY_VERIFIER_H
