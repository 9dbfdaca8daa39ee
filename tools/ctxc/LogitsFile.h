//===- LogitsFile.h - the logits of a verification as a safetensors file --===//
#ifndef CTXC_TOOLS_CTXC_LOGITSFILE_H
#define CTXC_TOOLS_CTXC_LOGITSFILE_H

#include "ctxc/Verify/Verify.h"
#include "llvm/Support/Error.h"
#include <array>

namespace ctxc::driver {

/// Collects the logits of all three runs in every step, so that another program can compare them.
class LogitsFile {
public:
  /// The file must outlive the observer.
  LogitsObserver observer();

  /// Writes `full`, `patched` and `control`, (steps, vocabulary) each, as F32.
  llvm::Error write(llvm::StringRef path) const;

private:
  std::array<std::vector<float>, 3> rows;
  int64_t steps = 0;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_LOGITSFILE_H
