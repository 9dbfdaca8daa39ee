#ifndef CTXC_XF_CONTEXTUAL_OPS_TD
#define CTXC_XF_CONTEXTUAL_OPS_TD

// Contextual ops: these read the tokens before. Included by XFOps.td, whose classes it uses.

class XF_ContextualOp<string mnemonic, list<Trait> traits = []> : XF_PureOp<mnemonic,
    !listconcat([DeclareOpInterfaceMethods<XF_ContextualOpInterface>], traits)>;

def XF_AttentionOp : XF_ContextualOp<"attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "softmax attention of this token's queries over keys and values";
  let description = [{
    `out_h = Σ_j softmax_j(s_j) v_{j,g(h)}` with the scores `s_j = scale · q_h · k_{j,g(h)}`,
    or `s_j = c tanh(scale · q_h · k_{j,g(h)} / c)` with a `softcap` c, over the
    positions `j ≤ p` that are visible; query head h reads key head
    `g(h) = ⌊h G / H⌋`. With a window w > 0 only `p − j < w` is visible. `bidirectional`, every
    position that the run holds is, those behind the token too.

    With `sinks` b the softmax has one term more, of score `b_h`, that leads to no value: the
    weights of the visible positions sum to less than one.

    With `slopes` m (ALiBi) `q_h · k_{j,g(h)} + m_h j` stands in the place of the product; the
    absolute position j has the effect of the distance `j − p`, since a softmax does not see
    `m_h p`. `rounded`, j, m_h and their product are each rounded to bfloat16 first.

    - C1: q is (H, D), k (G, D), v (G, E), and G divides H; the result is (H, E).
    - C2: the softcap is finite and positive.
    - C3: the slopes and the sinks are (H).
    - C4: what is bidirectional has no window.

    ```mlir
    %o = xf.attention %q, %k, %v scale 0.125 window %w : tensor<8x64xf32>, tensor<2x64xf32>, tensor<2x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$query, XF_Activation:$key, XF_Activation:$value,
    Optional<Index>:$window, Optional<XF_Activation>:$slopes, Optional<XF_StoredVector>:$sinks,
    F32Attr:$scale, OptionalAttr<F32Attr>:$softcap, UnitAttr:$rounded, UnitAttr:$bidirectional,
    OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` $scale (`softcap` $softcap^)? (`window` $window^)?
    (`bidirectional` $bidirectional^)? (`slopes` $slopes^ `:` type($slopes))? (`rounded` $rounded^)?
    (`sinks` $sinks^ `:` type($sinks))? (`stream` $stream^)? attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($result)
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

    - C1: the name has no control characters.

    ```mlir
    %r = xf.contextual "retention"(%q, %k, %v) : (tensor<640xf32>, tensor<640xf32>, tensor<640xf32>) -> tensor<640xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<XF_Value>:$operands, OptionalAttr<StrAttr>:$stream);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$name `(` $operands `)` (`stream` $stream^)? attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

#endif // CTXC_XF_CONTEXTUAL_OPS_TD
