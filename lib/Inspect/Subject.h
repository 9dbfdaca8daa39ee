// How one token's patch is examined: what it writes, and where it comes from.
#ifndef CTXC_LIB_INSPECT_SUBJECT_H
#define CTXC_LIB_INSPECT_SUBJECT_H

#include "ctxc/Inspect/Inspect.h"

namespace ctxc {

/// What both examinations need of the subject.
struct SubjectRuns {
  Executor &executor;
  const Program &program;
  PatchNorms &norms;
  const InspectRequest &request;
  llvm::ArrayRef<int64_t> tokens; ///< the context and, last, the subject
  std::vector<int64_t> kept;      ///< kept positions before the subject
  std::unique_ptr<Run> full, reduced;

  int64_t token() const { return tokens.back(); }
  int64_t position() const { return tokens.size() - 1; }
  PatchOptions patchOptions() const;
  /// Fills both runs: `full` holds the context, `reduced` the kept tokens.
  llvm::Error start();
};

/// Stores in `subject` what the layers write under `patch`, and the cosines between these.
llvm::Error readWrites(SubjectRuns &runs, const Patch &patch, SubjectInspection &subject);

/// The patch with each part left out. `full` no longer holds the context afterwards.
llvm::Error leaveOut(SubjectRuns &runs, const PatchStep &whole, SubjectInspection &subject);

/// The `count` largest (or `smallest`) of `scores`; equal ones in order of index.
std::vector<TokenScore> extremes(llvm::ArrayRef<double> scores, size_t count,
                                 bool smallest = false);

} // namespace ctxc

#endif // CTXC_LIB_INSPECT_SUBJECT_H
