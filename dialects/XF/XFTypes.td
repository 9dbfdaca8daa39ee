#ifndef CTXC_XF_TYPES_TD
#define CTXC_XF_TYPES_TD

include "mlir/IR/OpBase.td"

//===----------------------------------------------------------------------===//
// Types: what a token carries, and what a checkpoint stores
//===----------------------------------------------------------------------===//

def XF_Activation : StaticShapeTensorOf<[F32]> {
  let summary = "a value of a token (an f32 tensor of fixed shape)";
}
def XF_Stored : StaticShapeTensorOf<[F32, BF16, F16]> {
  let summary = "a stored tensor (f32, bf16 or f16, of fixed shape)";
}
def XF_StoredVector : 1DTensorOf<[F32, BF16, F16]> {
  let summary = "a stored vector (f32, bf16 or f16)";
}
def XF_StoredMatrix : 2DTensorOf<[F32, BF16, F16]> {
  let summary = "a stored matrix (f32, bf16 or f16)";
}
def XF_StoredBank : 3DTensorOf<[F32, BF16, F16]> {
  let summary = "a stored bank of matrices (three dimensions; f32, bf16 or f16)";
}
def XF_Indices : 1DTensorOf<[I32]> {
  let summary = "a vector of indices (i32)";
}
def XF_TokenId : 0DTensorOf<[I32]> {
  let summary = "one number of a token (tensor<i32>)";
}

#endif // CTXC_XF_TYPES_TD
