#ifndef CTXC_XF_TYPES_TD
#define CTXC_XF_TYPES_TD

include "mlir/IR/OpBase.td"

//===----------------------------------------------------------------------===//
// Types: what a token carries, and what a checkpoint stores
//===----------------------------------------------------------------------===//

def XF_Activation : StaticShapeTensorOf<[F32]>;
def XF_Stored : StaticShapeTensorOf<[F32, BF16, F16]>;
def XF_StoredVector : 1DTensorOf<[F32, BF16, F16]>;
def XF_StoredMatrix : 2DTensorOf<[F32, BF16, F16]>;
def XF_StoredBank : 3DTensorOf<[F32, BF16, F16]>;
def XF_Indices : 1DTensorOf<[I32]>;
def XF_TokenId : 0DTensorOf<[I32]>;

#endif // CTXC_XF_TYPES_TD
