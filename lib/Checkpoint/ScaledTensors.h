//===- ScaledTensors.h - tensors whose scales lie in another --------------===//
//
// A quantised Hugging Face checkpoint stores a matrix as two tensors; config.json's
// quantization_config says how. Here they are joined to one tensor under the name of the matrix,
// which is what all other code sees. Nothing is copied, and the checkpoint is not trusted.
//
//   fp8     NAME (F8_E4M3; out × in) and NAME_scale_inv (F32, BF16 or F8_E8M0), a scale for each
//           weight_block_size elements: as in DeepSeek-V3
//   mxfp4   NAME_blocks (U8; … × out × in/32 × 16) and NAME_scales (U8; … × out × in/32): as in
//   gpt-oss
//
// Each may have a dimension of experts in front.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_CHECKPOINT_SCALEDTENSORS_H
#define CTXC_LIB_CHECKPOINT_SCALEDTENSORS_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// `tensors`, in which each matrix and its scales are one tensor, at the place of the first;
/// unchanged where `config` says nothing of fp8 or mxfp4. Errors, joined: elements without scales
/// or scales without elements; another type; a shape that does not fit the other's, or that has no
/// matrix; a weight_block_size that is no pair of sizes; a name that also names another tensor.
llvm::Expected<std::vector<TensorView>> joinScales(const llvm::json::Object &config,
                                                   llvm::StringRef configPath,
                                                   std::vector<TensorView> tensors);

} // namespace ctxc

#endif // CTXC_LIB_CHECKPOINT_SCALEDTENSORS_H
