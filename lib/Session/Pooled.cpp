// The vector of a whole text, of checkpoints that say how it is made.
#include "Use.h"
#include "ctxc/Checkpoint/SentencePooling.h"
#include "ctxc/Program/ModelEnds.h"

using namespace ctxc;
using llvm::Expected;

bool Model::isHeadless() const {
  auto models = module().getOps<xf::ModelOp>();
  return !models.empty() && ctxc::isHeadless(*models.begin());
}

/// What `verify` gives, and for a model without a head the pooled vectors of the three runs. A
/// pooling that is not understood gives a warning.
Expected<VerifyResult>
Model::withPooled(Executor &executor, const RunRequest &request,
                  llvm::function_ref<Expected<VerifyResult>(const RunRequest &)> verify) {
  if (!request.headless || !modelCheckpoint || inMemory || !request.control)
    return verify(request);
  Expected<std::optional<Pooling>> pooling = readPooling(*modelCheckpoint);
  if (!pooling)
    handle({Place(),
            mlir::DiagnosticSeverity::Warning,
            llvm::toString(pooling.takeError()) + "; the pooled vector is not compared",
            "",
            {}});
  if (!pooling || !*pooling)
    return verify(request);
  std::vector<double> lastPatched, lastControl;
  RunRequest asked = request;
  asked.logits = [&](llvm::ArrayRef<double> full, llvm::ArrayRef<double> patched,
                     llvm::ArrayRef<double> control) {
    lastPatched = patched.vec();
    lastControl = control.vec();
    if (request.logits)
      request.logits(full, patched, control);
  };
  Expected<VerifyResult> result = verify(asked);
  if (!result)
    return result;
  auto pooled = poolText(executor, request, **pooling, lastPatched, lastControl);
  if (!pooled)
    return pooled.takeError();
  result->pooled = std::move(*pooled);
  return result;
}
