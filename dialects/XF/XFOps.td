#ifndef CTXC_XF_OPS_TD
#define CTXC_XF_OPS_TD

include "dialects/XF/XFDialect.td"
include "dialects/XF/XFAttrs.td"
include "dialects/XF/XFInterfaces.td"
include "dialects/XF/XFTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class XF_Op<string mnemonic, list<Trait> traits = []> : Op<XF_Dialect, mnemonic, traits>;

// A pure function of its token: result types follow from the operands'.
class XF_PureOp<string mnemonic, list<Trait> traits = []>
    : XF_Op<mnemonic, !listconcat([Pure], traits)>;

class XF_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : XF_PureOp<mnemonic, !listconcat([SameOperandsAndResultType,
        DeclareOpInterfaceMethods<XF_FactsOpInterface>,
        DeclareOpInterfaceMethods<XF_SolvableOpInterface>], traits)>;

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

def XF_BlockOp : XF_Op<"block", [FunctionOpInterface, IsolatedFromAbove]> {
  let summary = "one residual block, or any other stretch of a model";
  let description = [{
    `T(C, x)`: the body computes the block's outputs for one token from its
    inputs (one, or several residual streams) and its parameters. Layers of the
    same structure share one block; their parameters' names differ by the prefix
    of `xf.layer`.

    - C1: the operands of `xf.yield` have the block's result types.
    - C2: a block does not call layers.

    ```mlir
    xf.block @ffn(%x: tensor<64xf32>) -> tensor<64xf32> {
      %W = xf.param "w.weight" : tensor<64x64xf32>
      %y = xf.linear %W * %x : tensor<64x64xf32>, tensor<64xf32>
      %r = xf.add %x, %y : tensor<64xf32>
      xf.yield %r : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def XF_ModelOp : XF_Op<"model", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "a whole model: from a token to its logits";
  let description = [{
    The body runs once for each token: `xf.token` is its id, `xf.position` its
    absolute position; `xf.layer` calls the blocks; `xf.yield` gives the logits.

    - C1: the body ends in an `xf.yield` of one value.
    - C2: every `xf.layer` names a block of the module with matching types.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def XF_LayerOp : XF_Op<"layer", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a block with a layer's own parameters and settings";
  let description = [{
    Runs `block` with the parameters whose names are `prefix` followed by the
    block's own, unless `bind` gives another stored name for one, and with the
    given `settings` in place of the block's defaults. `frozen` lists
    parameters (by the block's names) that may not be patched in this layer.

    - C1: operand and result types are the block's.
    - C2: every key of `settings` names an `xf.setting` of the block with a value of
      its type; every setting without a default is given.
    - C3: `bind` and `frozen` name parameters of the block.

    ```mlir
    %x1 = xf.layer @gemma3(%x0) at "model.layers.0." settings {window = 512 : i64} : (tensor<640xf32>) -> tensor<640xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$block, Variadic<XF_Activation>:$inputs, StrAttr:$prefix,
    OptionalAttr<DictionaryAttr>:$settings, OptionalAttr<DictionaryAttr>:$bind,
    OptionalAttr<StrArrayAttr>:$frozen);
  let results = (outs Variadic<XF_Activation>:$outputs);
  let assemblyFormat = [{
    $block `(` $inputs `)` `at` $prefix (`settings` $settings^)? (`bind` $bind^)? (`frozen` $frozen^)?
    attr-dict `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    /// The stored name of the block's parameter `name` in this layer.
    std::string getStoredName(::llvm::StringRef name);
    /// The value of the setting `setting` here: this layer's, else its default.
    ::mlir::Attribute getSettingValue(SettingOp setting);
  }];
}

def XF_YieldOp : XF_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["BlockOp", "ModelOp"]>]> {
  let summary = "the outputs of a block, or the logits of a model";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

//===----------------------------------------------------------------------===//
// Sources: parameters, settings, the token
//===----------------------------------------------------------------------===//

def XF_ParamOp : XF_PureOp<"param", [DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "a stored parameter";
  let description = [{
    The tensor that the checkpoint stores under `name` (in a block: under the
    layer's prefix and `name`), in its stored shape and type. `frozen`: no patch
    may change it. Two `xf.param` of one name are the same, shared parameter.

    A name with a `*` stands for as many stored tensors as the first dimension has
    entries, one below the other: that with 0 in place of the star, with 1, and so on.

    - C1: a name has at most one `*`, and then its type at least one dimension.
    - C2: what is quantised is a matrix whose rows have a whole number of blocks.

    ```mlir
    %W = xf.param "mlp.up_proj.weight" : tensor<2048x640xbf16>
    %down = xf.param "mlp.experts.*.down_proj.weight" : tensor<8x64x128xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$frozen);
  let results = (outs XF_Parameter:$result);
  let assemblyFormat = "$name (`frozen` $frozen^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def XF_SettingOp : XF_PureOp<"setting", [DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "a number, or a vector of numbers, that layers may set apart";
  let description = [{
    What changes the numbers of a layer and not its structure: a window, the
    frequencies of a rotary embedding. So layers that differ in settings alone
    share one block and one kernel. `index` settings take an integer, `f32` ones
    a float, tensors an `#xf.rope` or dense elements.

    - C1: the default, where there is one, is of the result's type.

    ```mlir
    %window = xf.setting "window" : index = 512
    %f = xf.setting "rope" : tensor<128xf32> = #xf.rope<base = 1.0e4, dims = 256>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<AnyAttr>:$value);
  let results = (outs AnyTypeOf<[Index, F32, XF_Activation]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result) (`=` $value^)?";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether `value` can be bound to a setting of type `type`.
    static bool accepts(::mlir::Type type, ::mlir::Attribute value);
    /// The numbers of `value` for a setting of type `type`, in float64.
    static ::llvm::SmallVector<double> numbers(::mlir::Type type, ::mlir::Attribute value);
  }];
}

def XF_TokenOp : XF_PureOp<"token"> {
  let summary = "the token's id";
  let description = [{
    ```mlir
    %id = xf.token : tensor<i32>
    ```
  }];
  let results = (outs XF_TokenId:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def XF_PositionOp : XF_PureOp<"position"> {
  let summary = "the token's absolute position";
  let description = [{
    Counted from 0 in the whole text. A patched run has not read the context and still
    counts it: its token stands where it stands in the full run. A table whose first rows belong
    to no position is read with an offset of that many rows, `plus`.

    - C1: the offset is not negative.

    ```mlir
    %p = xf.position plus 2 : tensor<i32>
    ```
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs XF_TokenId:$result);
  let assemblyFormat = "(`plus` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def XF_EmbedOp : XF_PureOp<"embed", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "a row of a table: `E[id]`";
  let description = [{
    ```mlir
    %E = xf.param "embed.weight" : tensor<50x48xf32>
    %x = xf.embed %E[%id] : tensor<50x48xf32>, tensor<i32>
    ```
  }];
  let arguments = (ins XF_StoredMatrix:$table, XF_TokenId:$id);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$table `[` $id `]` attr-dict `:` type($table) `,` type($id)";
}

//===----------------------------------------------------------------------===//
// Parameterised ops: each has one parameter, and can be patched
//===----------------------------------------------------------------------===//

class XF_AssignableOp<string mnemonic, list<string> methods = []> : XF_PureOp<mnemonic, [
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_AssignableOpInterface, methods>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]>;

def XF_LinearOp : XF_AssignableOp<"linear"> {
  let summary = "`y = W x`";
  let description = [{
    Applied along the last dimension of `x`. `transposed`: the checkpoint stores
    `Wᵀ`, that is (in, out).

    - C1: W is (out, in), or (in, out) where transposed; x's last dimension is `in`.

    ```mlir
    %u = xf.linear %W * %z : tensor<2048x640xbf16>, tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_StoredMatrix:$weight, XF_Activation:$data, UnitAttr:$transposed);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$weight `*` $data (`transposed` $transposed^)? attr-dict `:` type($weight) `,` type($data)";
}

def XF_BiasOp : XF_AssignableOp<"bias"> {
  let summary = "`y = x + b`";
  let description = [{
    - C1: b has x's shape, or x's last dimensions (b is then shared by the leading ones).

    ```mlir
    %y = xf.bias %x + %b : tensor<640xf32>, tensor<640xbf16>
    ```
  }];
  let arguments = (ins XF_Activation:$data, XF_Stored:$bias);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `+` $bias attr-dict `:` type($data) `,` type($bias)";
}

def XF_ScaleOp : XF_AssignableOp<"scale", ["findNormMatrix"]> {
  let summary = "`y = (offset + m) ⊙ x`";
  let description = [{
    `offset` is 1 where a checkpoint stores a scale's distance from one (Gemma).

    - C1: m has x's shape, or x's last dimensions (m is then shared by the leading ones).

    ```mlir
    %s = xf.scale %n by %m offset 1.0 : tensor<640xf32>, tensor<640xbf16>
    ```
  }];
  let arguments = (ins XF_Activation:$data, XF_Stored:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `by` $scale (`offset` $offset^)? attr-dict `:` type($data) `,` type($scale)";
}

//===----------------------------------------------------------------------===//
// Functions of a token
//===----------------------------------------------------------------------===//

def XF_NormalizeOp : XF_ElementwiseOp<"normalize"> {
  let summary = "a normalisation along the last dimension, without parameters";
  let description = [{
    rms: `x / √(mean x² + ε)`; layer: `(x − mean x) / √(var x + ε)`; l2: `x / √(Σ x² + ε)`;
    sum: `x / (Σ x + ε)`.
    A scale or bias that follows is an op of its own.

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
  let summary = "`min(max(x, −c), c)`";
  let description = [{
    - C1: c is finite and positive.

    ```mlir
    %clipped = xf.clamp %q to 8.0 : tensor<2048xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$data, F32Attr:$limit);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `to` $limit attr-dict `:` type($data)";
  let hasVerifier = 1;
}

def XF_AddOp : XF_ElementwiseOp<"add", [Commutative, DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`a + b`";
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def XF_SubOp : XF_ElementwiseOp<"sub", [DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
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
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "`a ⊘ b` with 1 in the place of every zero of `b`, as the paper divides";
  let description = [{ - C1: the types are equal, or b is tensor<1xf32>. }];
  let arguments = (ins XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}

def XF_TimesOp : XF_ElementwiseOp<"times", [DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
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

def XF_ReshapeOp : XF_PureOp<"reshape", [DeclareOpInterfaceMethods<XF_FactsOpInterface>,
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
  let summary = "values one after the other along the first dimension";
  let description = [{
    - C1: at least one operand; all dimensions but the first are equal.

    ```mlir
    %both = xf.concat %a, %b : tensor<640xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins Variadic<XF_Activation>:$parts);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$parts attr-dict `:` type($parts)";
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

def XF_RotaryOp : XF_PureOp<"rotary", [AllTypesMatch<["data", "result"]>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "rotates pairs of entries of each head by position × frequency";
  let description = [{
    For a head `x` of D entries and n frequencies f, with `p` the absolute
    position: the pair (i, i + n) (half) or (2i, 2i + 1) (interleaved) is
    rotated by the angle `p f_i`. Entries from 2n on stay.

    - C1: x is (heads, D) and 2n ≤ D.

    ```mlir
    %r = xf.rotary half %q by %f : tensor<4x256xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins XF_RotaryStyle:$style, XF_Activation:$data, XF_Activation:$frequencies);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$style $data `by` $frequencies attr-dict `:` type($data) `,` type($frequencies)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Contextual ops: these read the tokens before
//===----------------------------------------------------------------------===//

class XF_ContextualOp<string mnemonic, list<Trait> traits = []> : XF_PureOp<mnemonic,
    !listconcat([DeclareOpInterfaceMethods<XF_ContextualOpInterface>], traits)>;

def XF_AttentionOp : XF_ContextualOp<"attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "causal softmax attention of this token's queries over keys and values";
  let description = [{
    `out_h = Σ_j softmax_j(s_j) v_{j,g(h)}` with the scores `s_j = scale · q_h · k_{j,g(h)}`,
    or `s_j = c tanh(scale · q_h · k_{j,g(h)} / c)` with a `softcap` c, over the
    positions `j ≤ p` that are visible; query head h reads key head
    `g(h) = ⌊h G / H⌋`. With a window w > 0 only `p − j < w` is visible.

    With `slopes` m (ALiBi) `q_h · k_{j,g(h)} + m_h j` stands in the place of the product; the
    absolute position j has the effect of the distance `j − p`, since a softmax does not see
    `m_h p`. `rounded`, j, m_h and their product are each rounded to bfloat16 first.

    - C1: q is (H, D), k (G, D), v (G, E), and G divides H; the result is (H, E).
    - C2: the softcap is finite and positive.
    - C3: the slopes are (H).

    ```mlir
    %o = xf.attention %q, %k, %v scale 0.125 window %w : tensor<8x64xf32>, tensor<2x64xf32>, tensor<2x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$query, XF_Activation:$key, XF_Activation:$value,
    Optional<Index>:$window, Optional<XF_Activation>:$slopes, F32Attr:$scale,
    OptionalAttr<F32Attr>:$softcap, UnitAttr:$rounded, OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` $scale (`softcap` $softcap^)? (`window` $window^)?
    (`slopes` $slopes^ `:` type($slopes))? (`rounded` $rounded^)? (`stream` $stream^)? attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def XF_ConvOp : XF_ContextualOp<"conv", [AllTypesMatch<["data", "result"]>]> {
  let summary = "a causal convolution over positions, each channel by itself";
  let description = [{
    `y_c = Σ_{i<k} W[c, k − 1 − i] x_c(p − i)`, where tokens before the first are zero.
    "Before" counts tokens that the run has seen, not absolute positions.

    - C1: x is (channels), W (channels, k).

    ```mlir
    %y = xf.conv %K, %x : tensor<640x4xf32>, tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_StoredMatrix:$weight, XF_Activation:$data, OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$weight `,` $data (`stream` $stream^)? attr-dict `:` type($weight) `,` type($data)";
  let hasVerifier = 1;
}

def XF_ScanOp : XF_ContextualOp<"scan", [SameOperandsAndResultType]> {
  let summary = "a gated linear recurrence: `h_p = a_p ⊙ h_{p−1} + b_p`, from 0";
  let description = [{
    The state is one vector, however long the context. "Before" counts tokens that the run
    has seen, not absolute positions.

    ```mlir
    %h = xf.scan %a, %b : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$gate, XF_Activation:$input, OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$gate `,` $input (`stream` $stream^)? attr-dict `:` type($result)";
}

def XF_OpaqueContextualOp : XF_ContextualOp<"contextual"> {
  let summary = "any other op that reads the context: known to the analyses, not to be run";
  let description = [{
    For a mixing op that xf does not have: the block around it can be checked all the
    same, since what the analyses need to know is that its result depends on the context.

    ```mlir
    %r = xf.contextual "retention"(%q, %k, %v) : (tensor<640xf32>, tensor<640xf32>, tensor<640xf32>) -> tensor<640xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<AnyType>:$operands, OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$name `(` $operands `)` (`stream` $stream^)? attr-dict `:` functional-type($operands, $result)";
}

include "dialects/XF/XFMixtureOps.td"

#endif // CTXC_XF_OPS_TD
