//===- Expression.h - arithmetic of descriptions ---------------------------===//
//
// What a description says of a number: `2 * hidden_size / num_attention_heads`, `1 /
// sqrt(head_dim)`,
// `(i + 1) % sliding_window_pattern == 0`. Numbers, keys, + - * / %, comparisons (1 or 0), and the
// functions sqrt, floor and f32, which rounds to float32.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_DESCRIBED_EXPRESSION_H
#define CTXC_IMPORT_DESCRIBED_EXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace ctxc::described {

/// The value of `text`, in which `valueOf` gives the values of names. NaN where it has none.
double evaluate(llvm::StringRef text, llvm::function_ref<double(llvm::StringRef)> valueOf);

} // namespace ctxc::described

#endif // CTXC_IMPORT_DESCRIBED_EXPRESSION_H
