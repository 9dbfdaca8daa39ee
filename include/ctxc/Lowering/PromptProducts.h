//===- PromptProducts.h - how a prompt's activations are multiplied -------===//
#ifndef CTXC_LOWERING_PROMPTPRODUCTS_H
#define CTXC_LOWERING_PROMPTPRODUCTS_H

#include <cstdint>

namespace mlir {
class Operation;
} // namespace mlir

namespace ctxc {

/// How layers that run 16 tokens or more at once without a patch multiply activations with weights.
/// Everything after a prompt, including patches, is multiplied as `Exact`.
enum class PromptProducts : uint8_t {
  /// In float32; each sum has the same order as for a single token.
  Exact,
  /// As exactly, in another order: activations and weights are split into bfloat16 numbers for the
  /// tile registers of AMX. Faster.
  Split,
  /// Activations are rounded to bfloat16 before products with bfloat16 weights, as other programs
  /// do: faster still, and less exact.
  Rounded
};

/// Marks a kernel to multiply like this in calls of many rows.
void markProducts(mlir::Operation *kernel, PromptProducts products);

} // namespace ctxc

#endif // CTXC_LOWERING_PROMPTPRODUCTS_H
