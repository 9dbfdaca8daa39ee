// Logits in float32 as executors return them; an error where one is not finite.
#ifndef CTXC_LIB_RUNTIME_LOGITS_H
#define CTXC_LIB_RUNTIME_LOGITS_H

#include "ctxc/Program/Logits.h"
#include "llvm/Support/Error.h"

namespace ctxc {

llvm::Error checkFinite(llvm::ArrayRef<float> logits);
/// The same of row `row` of a value of `rows` rows; the row is of the token at `position`.
llvm::Error checkFiniteRow(llvm::ArrayRef<float> value, int64_t row, int64_t rows,
                           int64_t position);
llvm::Expected<Logits> finiteLogits(llvm::ArrayRef<float> logits);

/// The index of the largest logit, the lowest of equals.
llvm::Expected<int64_t> largestLogit(llvm::ArrayRef<float> logits);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_LOGITS_H
