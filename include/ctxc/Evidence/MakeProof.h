//===- MakeProof.h - verdicts and plans written down as a proof -----------===//
#ifndef CTXC_EVIDENCE_MAKEPROOF_H
#define CTXC_EVIDENCE_MAKEPROOF_H

#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Proof/Proof.h"

namespace ctxc {

/// The proof of `groups`, which `checkModel` found for `module` under `options`. For a rejected
/// block it searches for barriers, and for weights and a context for which no patch reaches an
/// output. Errors: none were found for a rejected block, or the reference cannot run it.
llvm::Expected<proof::Proof> makeProof(mlir::ModuleOp module, llvm::ArrayRef<VerdictGroup> groups,
                                       const ModelOptions &options);

} // namespace ctxc

#endif // CTXC_EVIDENCE_MAKEPROOF_H
