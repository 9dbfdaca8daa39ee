#ifndef CTXC_KERNEL_OPS_TD
#define CTXC_KERNEL_OPS_TD

include "dialects/Kernel/KernelAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

def Kernel_QuantizedOp : Kernel_Op<"quantized", [Pure]> {
  let summary = "a quantised matrix, in the place of the numbers that it stores";
  let description = [{
    Its result is memory that only a contraction may read, which decodes it from `memory`.

    - C1: `memory` has as many bytes as a matrix of the type `stored`, and the result its shape.
  }];
  let arguments = (ins MemRefRankOf<[I8], [1]>:$memory, TypeAttrOf<AnyRankedTensor>:$stored);
  let results = (outs MemRefRankOf<[F32], [2]>:$matrix);
  let assemblyFormat = "$memory `as` $stored attr-dict `:` type($memory) `to` type($matrix)";
  let hasVerifier = 1;
}

#endif // CTXC_KERNEL_OPS_TD
