//===- GivenRun.h - requests that share a full run --------------------------===//
//
// verifyEach and makePatches (Verify.h) with a full run that the caller provides, so that a prefix
// that prompts share is read only once. The run must hold a prefix of the request's tokens that
// ends before the first of its positions, and have room for all tokens. Afterwards it holds the
// tokens up to the last of the positions; after an error, some of them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_GIVENRUN_H
#define CTXC_VERIFY_GIVENRUN_H

#include "ctxc/Verify/Verify.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ctxc {

/// Takes a verified step and its patch. An error ends the verification.
using VerifiedPatch = llvm::function_ref<llvm::Error(const VerifyStep &step, const Patch &patch)>;

/// Verifies the patch of each of `request.positions`. Errors: those of verifyEach and of `take`.
llvm::Error verifyEach(Executor &executor, const RunRequest &request, Run &full, PatchNorms &norms,
                       VerifiedPatch take);

/// Makes the patch of each of `request.positions`. Errors: those of makePatches.
llvm::Error makePatches(Executor &executor, const RunRequest &request, Run &full, PatchSink sink);

} // namespace ctxc

#endif // CTXC_VERIFY_GIVENRUN_H
