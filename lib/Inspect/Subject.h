// The looks at one token's patch: what it writes, and where it comes from.
#ifndef CTXC_LIB_INSPECT_SUBJECT_H
#define CTXC_LIB_INSPECT_SUBJECT_H

#include "ctxc/Inspect/Inspect.h"

namespace ctxc {

/// What both looks need of the subject. Of a run, `tokens` are all up to the subject itself.
struct SubjectRuns {
  Executor &executor;
  const Program &program;
  PatchNorms &norms;
  const InspectRequest &request;
  llvm::ArrayRef<int64_t> tokens; ///< the context and, last, the subject
  std::vector<int64_t> kept;      ///< those before the subject
  std::unique_ptr<Run> full, reduced;

  int64_t token() const { return tokens.back(); }
  int64_t position() const { return tokens.size() - 1; }
  PatchOptions patchOptions() const;
  /// Fills both runs: `full` holds the context, `reduced` the kept tokens.
  llvm::Error start();
};

/// The layers' writes under `patch`, and their cosines, into `subject`.
llvm::Error readWrites(SubjectRuns &runs, const Patch &patch, SubjectInspection &subject);

/// The patch with each part left out. `full` no longer holds the context afterwards.
llvm::Error leaveOut(SubjectRuns &runs, const PatchStep &whole, SubjectInspection &subject);

/// The `count` largest, or with `smallest` the smallest, of `scores`; of equals the lower first.
std::vector<TokenScore> extremes(llvm::ArrayRef<double> scores, size_t count,
                                 bool smallest = false);

} // namespace ctxc

#endif // CTXC_LIB_INSPECT_SUBJECT_H
