#ifndef CTXC_KERNEL_OPS_TD
#define CTXC_KERNEL_OPS_TD

include "dialects/Kernel/KernelAttrs.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
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

def Kernel_Matrix : AnyTypeOf<[2DTensorOf<[F32, BF16, F16]>, MemRefRankOf<[F32, BF16, F16], [2]>]>;
def Kernel_Vectors : AnyTypeOf<[2DTensorOf<[F32]>, MemRefRankOf<[F32], [2]>]>;

def Kernel_ContractOp : Kernel_Op<"contract", [
    DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
        ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "a stored matrix times the vectors of all rows: `y[s, m] += Σ_k W[m, k] x[s, k]`";
  let description = [{
    In destination style, on tensors and on memory: the result is `sums` with the products added. W
    is a parameter, of the type that it is stored in, or what `kernel.quantized` stands for; a
    matrix that is stored as (in, out) is `transposed`: `y[s, m] += Σ_k W[k, m] x[s, k]`. Made where
    a block multiplies by a parameter; the lowerings have functions and launches of their own for it.

    - C1: the sizes of `matrix`, `vectors` and `sums` are (m, k), (s, k) and (s, m); of a transposed
      matrix (k, m).
    - C2: all operands are tensors, and the result is of the type of `sums`; or all are memory, and
      there is no result.

    ```mlir
    %y = kernel.contract %W * %x into %zeros
        : tensor<45x33xbf16>, tensor<?x33xf32>, tensor<?x45xf32> -> tensor<?x45xf32>
    ```
  }];
  let arguments = (ins Kernel_Matrix:$matrix, Kernel_Vectors:$vectors, Kernel_Vectors:$sums,
                       UnitAttr:$transposed);
  let results = (outs Optional<2DTensorOf<[F32]>>:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$matrix, "::mlir::Value":$vectors,
                                 "::mlir::Value":$sums, "bool":$transposed)>];
  let assemblyFormat = [{
    $matrix `*` $vectors `into` $sums (`transposed` $transposed^)? attr-dict `:` type($matrix) `,`
    type($vectors) `,` type($sums) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getSumsMutable(); }

    /// The loops of a plain one, along a row of the matrix innermost: how each of the operands is
    /// indexed by them, and which adds up.
    ::llvm::SmallVector<::mlir::AffineMap> getIndexingMaps();
    ::llvm::SmallVector<::mlir::utils::IteratorType> getIteratorTypes();
    /// The same as an op of linalg, in the place of this one.
    ::mlir::linalg::GenericOp generalize();
  }];
}

def Kernel_ExpertsOp : Kernel_Op<"experts", []> {
  let summary = "selected matrices of a bank times vectors: `y[s, j] = W[selected[s, j]] x[s, j]`";
  let description = [{
    On memory. The bank is what its parameter's role says: addresses of matrices of the type
    `stored` without its first dimension, or the numbers themselves. All slots j of a row may have
    one vector in common. Matrices that are stored as (in, out) are `transposed`.

    - C1: the sizes of `stored`, `vectors`, `selected` and `sums` are (n, m, k), (s, j, k) or
      (s, k), (s, j) and (s, j, m); of transposed matrices (n, k, m).
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$bank, Arg<AnyMemRef, "", [MemRead]>:$vectors,
                       Arg<MemRefRankOf<[I32], [2]>, "", [MemRead]>:$selected,
                       Arg<MemRefRankOf<[F32], [3]>, "", [MemWrite]>:$sums,
                       TypeAttrOf<3DTensorOf<[AnyType]>>:$stored, UnitAttr:$transposed);
  let assemblyFormat = [{
    $bank `[` $selected `]` `*` $vectors `into` $sums `of` $stored (`transposed` $transposed^)?
    attr-dict `:` type($bank) `,` type($selected) `,` type($vectors) `,` type($sums)
  }];
  let hasVerifier = 1;
}

#endif // CTXC_KERNEL_OPS_TD
