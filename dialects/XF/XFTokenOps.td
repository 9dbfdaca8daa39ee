#ifndef CTXC_XF_TOKEN_OPS_TD
#define CTXC_XF_TOKEN_OPS_TD

// Functions of a single token, without parameters. XFOps.td includes this file after defining the
// classes that it uses.

def XF_NormalizeOp : XF_ElementwiseOp<"normalize"> {
  let summary = "a normalisation along the last dimension, without parameters";
  let description = [{
    rms: `x / √(mean x² + ε)`; layer: `(x − mean x) / √(var x + ε)`; l2: `x / √(Σ x² + ε)`; sum:
    `x / (Σ x + ε)`. A scale or a bias that follows is a separate op.

    - C1: ε is finite and not negative.

    ```mlir
    %n = xf.normalize rms %x eps 1.0e-6 : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_NormKind:$kind, XF_Activation:$data, F64Attr:$eps);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$kind $data `eps` $eps attr-dict `:` type($data)";
  let hasVerifier = 1;
}

def XF_ActivationOp : XF_ElementwiseOp<"activation"> {
  let summary = "an elementwise nonlinearity";
  let description = [{
    | kind | y |
    |---|---|
    | `gelu` | `x Φ(x)`, Φ by erf |
    | `gelu_tanh` | `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))` |
    | `quick_gelu` | `x σ(1.702 x)` |
    | `silu` | `x σ(x)` |
    | `relu`, `relu2` | `max(x, 0)`, and its square |
    | `sigmoid`, `tanh`, `exp` | `σ(x)`, `tanh x`, `eˣ` |
    | `softplus` | `log(1 + eˣ)` |
    | `abs`, `sqrt` | `|x|`, `√max(x, 0)` |
    | `log` | `log max(x, 2⁻¹²⁶)`: of the least normal number where x is not positive |

    ```mlir
    %h = xf.activation gelu_tanh %u : tensor<2048xf32>
    ```
  }];
  let arguments = (ins XF_ActivationKind:$kind, XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$kind $data attr-dict `:` type($data)";
}

def XF_SoftmaxOp : XF_ElementwiseOp<"softmax"> {
  let summary = "softmax along the last dimension";
  let arguments = (ins XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data attr-dict `:` type($data)";
}

def XF_SoftcapOp : XF_ElementwiseOp<"softcap"> {
  let summary = "`c tanh(x / c)`";
  let description = [{
    - C1: c is finite and positive.

    ```mlir
    %capped = xf.softcap %logits at 30.0 : tensor<50xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, F32Attr:$cap);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `at` $cap attr-dict `:` type($data)";
  let hasVerifier = 1;
}

def XF_ClampOp : XF_ElementwiseOp<"clamp"> {
  let summary = "`min(max(x, −c), c)`, or `min(x, c)`";
  let description = [{
    With `above`, only the upper limit applies: the second formula.

    - C1: c is finite and positive.

    ```mlir
    %clipped = xf.clamp %q to 8.0 : tensor<2048xf32>
    %gate = xf.clamp %g to 7.0 above : tensor<2048xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, F32Attr:$limit, UnitAttr:$above);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `to` $limit (`above` $above^)? attr-dict `:` type($data)";
  let hasVerifier = 1;
}

def XF_LeakyOp : XF_ElementwiseOp<"leaky", [DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`x` where x is positive, and `c x` elsewhere";
  let description = [{
    - C1: c is finite and positive, so that every value is that of one x.

    ```mlir
    %y = xf.leaky %x by 0.01 : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, F32Attr:$slope);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `by` $slope attr-dict `:` type($data)";
  let hasVerifier = 1;
}

def XF_PowerOp : XF_ElementwiseOp<"power", [DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`|x|ⁿ` with the sign of x";
  let description = [{
    `x |x|` for n = 2, `x³` for n = 3; with `root`, what has this for its power: each value is that
    of one x.

    - C1: n is 2 or 3.

    ```mlir
    %y = xf.power %x to 3 : tensor<640xf32>
    %x = xf.power %y to 3 root : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, I64Attr:$exponent, UnitAttr:$root);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `to` $exponent (`root` $root^)? attr-dict `:` type($data)";
  let extraClassDeclaration = [{
    /// The value at x.
    double at(double x);
  }];
  let hasVerifier = 1;
}

def XF_RoundOp : XF_ElementwiseOp<"round", [DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "the nearest numbers of a narrower type";
  let description = [{
    As by `x.bfloat16().float()`. Verdicts are those of a program that does not round: where it does,
    a patch is exact up to these roundings, and reports say how large they are.

    ```mlir
    %y = xf.round %x to bf16 : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, XF_NarrowType:$narrow);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `to` $narrow attr-dict `:` type($data)";
  let extraClassDeclaration = [{
    /// The nearest number to x.
    double at(double x);
  }];
}

def XF_AddOp : XF_ElementwiseOp<"add", [Commutative, DeclareOpInterfaceMethods<XF_ReachOpInterface>],
                                ["getSumTerms"]> {
  let summary = "`a + b`";
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def XF_SubOp : XF_ElementwiseOp<"sub", [DeclareOpInterfaceMethods<XF_ReachOpInterface>],
                                ["getSumTerms"]> {
  let summary = "`a − b`";
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def XF_MulOp : XF_PureOp<"mul", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`a ⊙ b`; a `b` of one element multiplies all of `a`";
  let description = [{
    - C1: the types are equal, or b is tensor<1xf32>.

    ```mlir
    %gated = xf.mul %a, %b : tensor<640xf32>, tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}

def XF_DivOp : XF_PureOp<"div", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface, ["getConditions"]>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`a ⊘ b`, where each zero of `b` counts as 1, as in the paper";
  let description = [{ - C1: the types are equal, or b is tensor<1xf32>. }];
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}

def XF_TimesOp : XF_ElementwiseOp<"times", [DeclareOpInterfaceMethods<XF_ReachOpInterface>],
                                  ["getSumTerms"]> {
  let summary = "`c x` for a constant c";
  let description = [{
    - C1: c is finite.

    ```mlir
    %scaled = xf.times %x by 0.5 : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, F32Attr:$factor);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `by` $factor attr-dict `:` type($data)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

def XF_ReshapeOp : XF_PureOp<"reshape", [
    DeclareOpInterfaceMethods<XF_FactsOpInterface, ["getSumTerms"]>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "the same numbers in another shape, in row-major order";
  let description = [{
    - C1: both shapes have the same number of elements.

    ```mlir
    %heads = xf.reshape %q : tensor<1024xf32> to tensor<4x256xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data attr-dict `:` type($data) `to` type($result)";
  let hasVerifier = 1;
}

def XF_TransposeOp : XF_PureOp<"transpose", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface, ["getSumTerms"]>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "the dimensions in another order";
  let description = [{
    Dimension i of the result is dimension `order[i]` of the data: for `by [1, 0]`, `y_ij = x_ji`.

    - C1: `order` has each dimension of the data once.

    ```mlir
    %columns = xf.transpose %rows by [1, 0] : tensor<3x2xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, DenseI64ArrayAttr:$order);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `by` $order attr-dict `:` type($data)";
}

def XF_PermuteOp : XF_PureOp<"permute", [AllTypesMatch<["data", "result"]>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface, ["getSumTerms"]>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "parts of one dimension in another order: of the first, or `along`";
  let description = [{
    The dimension is divided into parts of the sizes `parts`; part i of the result is part
    `order[i]` of the data. A concatenation of slices that together hold each entry of one value once
    becomes such an op when a model is read.

    - C1: `along` is a dimension of the data.
    - C2: the sizes of the parts are positive, and their sum is that dimension.
    - C3: `order` has each part once.

    ```mlir
    %rolled = xf.permute %heads parts [1, 3] by [1, 0] : tensor<4x64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, DenseI64ArrayAttr:$parts, DenseI64ArrayAttr:$order,
    DefaultValuedAttr<I64Attr, "0">:$along);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $data `parts` $parts `by` $order (`along` $along^)? attr-dict `:` type($data)
  }];
  let extraClassDeclaration = [{
    /// The index at which each part of the data begins.
    ::llvm::SmallVector<int64_t> getStarts();
  }];
  let hasVerifier = 1;
}

def XF_SliceOp : XF_PureOp<"slice", [DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`size` entries from `from` on, of one dimension: the first, or `along`";
  let description = [{
    - C1: from ≥ 0 and from + size is at most that dimension.
    - C2: the other dimensions are equal.
    - C3: `along` is a dimension of the data.

    ```mlir
    %up = xf.slice %fused from 2048 : tensor<4096xf32> to tensor<2048xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, I64Attr:$from, DefaultValuedAttr<I64Attr, "0">:$along);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `from` $from (`along` $along^)? attr-dict `:` type($data) `to` type($result)";
  let hasVerifier = 1;
}

def XF_ConcatOp : XF_PureOp<"concat", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "values one after the other along one dimension: the first, or `along`";
  let description = [{
    - C1: at least one operand; the other dimensions are equal.
    - C2: `along` is a dimension of the parts.

    ```mlir
    %both = xf.concat %a, %b : tensor<640xf32>, tensor<128xf32>
    %keys = xf.concat %still, %turned along 1 : tensor<8x64xf32>, tensor<8x32xf32>
    ```
  }];
  let arguments = (ins Variadic<XF_Activation>:$parts, DefaultValuedAttr<I64Attr, "0">:$along);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$parts (`along` $along^)? attr-dict `:` type($parts)";
}

def XF_BroadcastOp : XF_PureOp<"broadcast", [DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "one row, repeated";
  let description = [{
    - C1: the first dimension is 1, and the result's is not 0; the others are equal.

    ```mlir
    %each = xf.broadcast %k : tensor<1x32xf32> to tensor<8x32xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data attr-dict `:` type($data) `to` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

def XF_RotaryOp : XF_PureOp<"rotary", [AllTypesMatch<["data", "result"]>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "rotates pairs of entries of each head by position × frequency";
  let description = [{
    For a head `x` of D entries, n frequencies f, and the absolute position `p`: the pair (i, i + n)
    (half) or (2i, 2i + 1) (interleaved) is rotated by the angle `p f_i` and multiplied by the
    `amplitude`. Entries from 2n on are unchanged.

    - C1: x is (heads, D) and 2n ≤ D.
    - C2: the amplitude is finite and not 0.

    ```mlir
    %r = xf.rotary half %q by %f : tensor<4x256xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins XF_RotaryStyle:$style, XF_Activation:$data, XF_Activation:$frequencies,
    DefaultValuedAttr<F32Attr, "1.0f">:$amplitude);
  let results = (outs XF_Activation:$result);
  let extraClassDeclaration = [{
    /// By how much a head can become longer, whatever is in it: entries that are not rotated keep
    /// their length.
    double getStretch();
  }];
  let assemblyFormat = [{
    $style $data `by` $frequencies (`amplitude` $amplitude^)? attr-dict
    `:` type($data) `,` type($frequencies)
  }];
  let hasVerifier = 1;
}

#endif // CTXC_XF_TOKEN_OPS_TD
