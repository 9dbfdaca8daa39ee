#ifndef CTXC_KERNEL_OPS_TD
#define CTXC_KERNEL_OPS_TD

include "dialects/Kernel/KernelAttrs.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

def Kernel_QuantizedOp : Kernel_Op<"quantized", [Pure]> {
  let summary = "stands for the numbers of a quantised matrix";
  let description = [{
    The result is a memref that only a contraction may read; the contraction decodes `memory`
    instead.

    - C1: `memory` has as many bytes as a matrix of the type `stored`, or as the same matrix in a GPU's
      memory, and the result its shape.
  }];
  let arguments = (ins MemRefRankOf<[I8], [1]>:$memory, TypeAttrOf<AnyRankedTensor>:$stored);
  let results = (outs MemRefRankOf<[F32], [2]>:$matrix);
  let assemblyFormat = "$memory `as` $stored attr-dict `:` type($memory) `to` type($matrix)";
  let hasVerifier = 1;
}

def Kernel_Matrix : AnyTypeOf<[2DTensorOf<[F32, BF16, F16]>, MemRefRankOf<[F32, BF16, F16], [2]>]>;
def Kernel_Floats : AnyTypeOf<[RankedTensorOf<[F32]>, MemRefOf<[F32]>]>;
def Kernel_State : AnyTypeOf<[RankedTensorOf<[F32, BF16]>, MemRefOf<[F32, BF16]>]>;
def Kernel_Vectors : AnyTypeOf<[2DTensorOf<[F32]>, MemRefRankOf<[F32], [2]>]>;

def Kernel_ContractOp : Kernel_Op<"contract", [
    DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
        ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "a stored matrix times the vectors of all rows: `y[s, m] += Σ_k W[m, k] x[s, k]`";
  let description = [{
    The op has destination style, on tensors or on memory: the result is `sums` with the products
    added. `matrix` is a parameter in its stored type, or the result of `kernel.quantized`. A matrix
    that is stored as (in, out) is marked `transposed`: `y[s, m] += Σ_k W[k, m] x[s, k]`. The op is
    created where a block multiplies with a parameter; lowerings turn it into separate functions or
    launches.

    - C1: the sizes of `matrix`, `vectors` and `sums` are (m, k), (s, k) and (s, m); a transposed
      matrix has (k, m).
    - C2: all operands are tensors, and the result has the type of `sums`; or all are memrefs, and
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

    /// The loops of the equivalent linalg op, with the loop along a row of the matrix innermost:
    /// how they index each operand, and which of them are reductions.
    ::llvm::SmallVector<::mlir::AffineMap> getIndexingMaps();
    ::llvm::SmallVector<::mlir::utils::IteratorType> getIteratorTypes();
    /// Replaces this op by an equivalent linalg op.
    ::mlir::linalg::GenericOp generalize();
  }];
}

def Kernel_ExpertsOp : Kernel_Op<"experts", []> {
  let summary = "selected matrices of a bank times vectors: `y[s, j] = W[selected[s, j]] x[s, j]`";
  let description = [{
    The op works on memory. Depending on its parameter's role, `bank` has the addresses of matrices
    of type `stored` without its first dimension, or the numbers themselves. All slots j of a row may
    share one vector. Matrices that are stored as (in, out) are marked `transposed`.

    - C1: the sizes of `stored`, `vectors`, `selected` and `sums` are (n, m, k), (s, j, k) or (s,
      k), (s, j) and (s, j, m); transposed matrices have (n, k, m).
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

def Kernel_CallOp : Kernel_Op<"call", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "calls a function of ctxc/Numerics for each row";
  let description = [{
    The op works on memory, whose first dimension is the rows. The function is called once for each
    row, with the `numbers`, and with the address of the row in each `memory`; memory that all rows
    share (SupportFunctions.def) is passed by its own address. The op writes all memory that the
    function does not declare const. The op is created when a block's op is lowered to such a call;
    on the processor --ctxc-lower-calls makes it a loop, and GPUs have their own code for each
    function.

    - C1: `callee` is a function of rows of SupportFunctions.def.
    - C2: `numbers` has the numbers that the function takes, in their types.
    - C3: `memory` has the memory that the function takes, with elements of its types; i8 stands for
      an element without a type in MLIR.
    - C4: in memory that rows do not share, the distance between rows is known, the elements of a
      row are contiguous, and there are as many rows as in the last `memory`.

    ```mlir
    kernel.call @ctxc_rows_count_zeros [0 : i32, 1, 64] (%x, %counts)
        : memref<?x64xf32>, memref<?x2xi64, strided<[6, 1], offset: 2>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, ArrayAttr:$numbers,
                       Variadic<AnyStridedMemRef>:$memory);
  let builders = [OpBuilder<(ins "::ctxc::kernel::SupportFunction":$function,
                                 "::llvm::ArrayRef<::ctxc::kernel::Number>":$numbers,
                                 "::mlir::ValueRange":$memory)>];
  let assemblyFormat = "$callee $numbers `(` $memory `)` attr-dict `:` type($memory)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    SupportFunction getFunction() { return *supportFunctionOf(getCallee()); }
    Signature getSignature();
    /// The distance between two rows of memory `i`, in elements.
    int64_t getRowDistance(unsigned i);
  }];
}

def Kernel_AttentionOp : Kernel_Op<"attention", [
    AttrSizedOperandSegments, DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    SingleBlock,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
        ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "attention: the values of all slots, mixed by the softmax of scores";
  let description = [{
    For each row s and each head r of a group g, with slots t:

        p[t] = Σ_d query[s, g, r, d] keys[t, g, d]
        a[t] = score(p[t], others…)
        y[s, g, r, x] = Σ_t softmax(a)[t] values[t, g, x]

    The region computes `score`. Its arguments are p[t] and one number of each of `others`, at the
    index that the map of the operand gives for (s, g, r, t); it yields −∞ where the row does not
    see the slot. The op has destination style, on tensors or on memory, and overwrites `mixed`.

    - `causal`: the rows are the last S slots, in order, and no row sees a slot behind its own.
      Slots behind are not read.
    - `window`: the largest number of slots that a causal row sees, including its own; 0 is no
      limit. Earlier slots are not read. A row may see fewer slots than this, as the scores say.
    - `own`: a score and a value that each row has beside the slots; the region is not applied to
      this score.
    - `sinks`: a score that each head of a row has beside the slots; it counts only in the softmax's
      denominator.

    - C1: the sizes of `query`, `keys`, `values` and `mixed` are (s, g, r, d), (t, g, d), (t, g, x)
      and (s, g, r, x); g, r, d and x are known. `sinks` and the own score have (s, g, r), and the
      own value (s, g, x).
    - C2: all operands are tensors, and the result has the type of `mixed`; or all are memrefs, and
      there is no result.
    - C3: each of `others` has a map from (s, g, r, t) to its dimensions. Each result of a map is a
      dimension or 0, and t may only be the last result.
    - C4: the region takes the product and one number for each of `others`, in its type, and yields
      a float32.
    - C5: only a causal op has a window.

    ```mlir
    %y = kernel.attention(%q, %k, %v) causal others(%positions, %slots : tensor<?xi32>, tensor<?xi32>)
        at [affine_map<(s, g, r, t) -> (s)>, affine_map<(s, g, r, t) -> (t)>] into %empty {
    ^bb0(%p: f32, %row: i32, %slot: i32):
      %seen = arith.cmpi sge, %row, %slot : i32
      %score = arith.select %seen, %p, %unseen : f32
      kernel.attend %score
    } : (tensor<?x2x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>), tensor<?x2x4x64xf32> -> tensor<?x2x4x64xf32>
    ```
  }];
  let arguments = (ins
    Kernel_Floats:$query, Kernel_State:$keys, Kernel_State:$values,
    Optional<AnyTypeOf<[1DTensorOf<[I64]>, MemRefRankOf<[I64], [1]>]>>:$window,
    Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$others, Optional<Kernel_Floats>:$sinks,
    Optional<Kernel_Floats>:$ownScores, Optional<Kernel_Floats>:$ownValues, Kernel_Floats:$mixed,
    AffineMapArrayAttr:$maps, UnitAttr:$causal);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$score);
  let assemblyFormat = [{
    `(` $query `,` $keys `,` $values `)` (`causal` $causal^)?
    (`window` `(` $window^ `:` type($window) `)`)?
    `others` `(` ($others^ `:` type($others))? `)` `at` $maps
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`own` `(` $ownScores^ `,` $ownValues `:` type($ownScores) `,` type($ownValues) `)`)?
    `into` $mixed $score attr-dict `:` `(` type($query) `,` type($keys) `,` type($values) `)` `,`
    type($mixed) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getMixedMutable(); }
    /// The number that the region yields (f32).
    ::mlir::Value yielded() { return getScore().front().back().getOperand(0); }

  private:
    ::llvm::LogicalResult verifyScore();
  }];
}

def Kernel_AttendOp : Kernel_Op<"attend", [Pure, Terminator, HasParent<"AttentionOp">]> {
  let summary = "yields a slot's score in kernel.attention";
  let arguments = (ins F32:$score);
  let assemblyFormat = "$score attr-dict";
}

def Kernel_ScanOp : Kernel_Op<"scan", [
    AttrSizedOperandSegments, SingleBlock, NoTerminator,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a recurrence: each row changes what the one before has left";
  let description = [{
    The op works on memory. What it carries from row to row has several parts, along the first
    dimension of `before`, which know nothing of each other. For each part p, and for the rows s in
    order, the region changes the part in place and writes row s of the `results`:

        state = before[p]
        for s: region(state, reads₀[map₀(s, p)], …, results[s, p])
        after[p] = state

    Its arguments are memory: what is left of each operand at that place. Without `after`, each row
    is a sequence of its own, which begins with `before`. `after` may be the memory of `before`.

    - C1: `before` and `after` have one known shape, whose first dimension is the number of parts,
      and the results are (rows, parts, …).
    - C2: each of `reads` has a map from (s, p) to its first dimensions.
    - C3: the region's arguments are memory of the elements, and of the dimensions that are left: of
      `before`, of each of `reads`, of `results`.

    ```mlir
    kernel.scan(%gate, %input : memref<?x8x80xf32>, memref<?x8x80xf32>)
        at [affine_map<(s, p) -> (s, p)>, affine_map<(s, p) -> (s, p)>]
        from %h : memref<8x80xf32> to %h : memref<8x80xf32> into %y : memref<?x8x80xf32> {
    ^bb0(%state: …, %a: …, %b: …, %result: …):
      linalg.generic …
    }
    ```
  }];
  let arguments = (ins Variadic<MemRefOf<[F32]>>:$reads, MemRefOf<[F32]>:$before,
    Optional<MemRefOf<[F32]>>:$after, MemRefOf<[F32]>:$results, AffineMapArrayAttr:$maps);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` ($reads^ `:` type($reads))? `)` `at` $maps `from` $before `:` type($before)
    (`to` $after^ `:` type($after))? `into` $results `:` type($results) $body attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getParts() {
      return ::llvm::cast<::mlir::MemRefType>(getBefore().getType()).getDimSize(0);
    }
  }];
}

#endif // CTXC_KERNEL_OPS_TD
