#include "ctxc/Numerics/StateMetrics.h"
#include "ctxc/Verify/Verify.h"
#include <numeric>

using namespace ctxc;
using llvm::Expected;

Expected<PooledText> ctxc::poolText(Executor &executor, const RunRequest &request,
                                    const Pooling &pooling, llvm::ArrayRef<double> patched,
                                    llvm::ArrayRef<double> control) {
  std::vector<int64_t> positions(request.tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::unique_ptr<Run> run = executor.start(positions.size());
  ForwardOptions options;
  options.allLogits = true;
  Expected<std::vector<double>> rows =
      executor.forward(*run, llvm::ArrayRef<Input>(request.tokens), positions, options);
  if (!rows)
    return rows.takeError();
  const int64_t width = rows->size() / positions.size();
  auto pooled = [&](llvm::ArrayRef<double> last) {
    std::copy(last.begin(), last.end(), rows->end() - width);
    return pool(pooling, *rows, width);
  };
  PooledText text;
  text.pooling = pooling;
  text.tokens = positions.size();
  text.full = pool(pooling, *rows, width);
  text.patched = pooled(patched);
  text.control = pooled(control);
  text.patchedLinf = compareStates(text.full, text.patched).linf;
  text.controlLinf = compareStates(text.full, text.control).linf;
  text.patchedCosine = cosineOf(text.full, text.patched);
  text.controlCosine = cosineOf(text.full, text.control);
  return text;
}
