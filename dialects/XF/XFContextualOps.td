#ifndef CTXC_XF_CONTEXTUAL_OPS_TD
#define CTXC_XF_CONTEXTUAL_OPS_TD

// Contextual ops, which read the tokens before their own. XFOps.td includes this file after
// defining the classes that it uses.

class XF_ContextualOp<string mnemonic, list<Trait> traits = [], list<string> methods = []>
    : XF_PureOp<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<XF_ContextualOpInterface, methods>], traits)>;

def XF_AttentionOp : XF_ContextualOp<"attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "softmax attention of this token's queries over keys and values";
  let description = [{
    `out_h = Σ_j softmax_j(s_j) v_{j,g(h)}` with the scores `s_j = scale · q_h · k_{j,g(h)}`, or
    `s_j = c tanh(scale · q_h · k_{j,g(h)} / c)` with a `softcap` c, over the visible positions
    `j ≤ p`; query head h reads key head `g(h) = ⌊h G / H⌋`. With a window w > 0 only positions with
    `p − j < w` are visible. With `bidirectional` every position of the run is visible, also those
    after the token.

    With `sinks` b the softmax has one more term, whose score is `b_h` and whose value is zero: the
    weights of the visible positions then sum to less than one.

    With `slopes` m (ALiBi), the product is replaced by `q_h · k_{j,g(h)} + m_h j`. The absolute
    position j has the same effect as the distance `j − p`, since adding `m_h p` to all scores does
    not change a softmax. With `rounded`, j, m_h and their product are each rounded to bfloat16.

    - C1: q is (H, D), k (G, D), v (G, E), and G divides H; the result is (H, E).
    - C2: the softcap is finite and positive.
    - C3: the slopes and the sinks are (H).
    - C4: bidirectional attention has no window.

    ```mlir
    %o = xf.attention %q, %k, %v scale 0.125 window %w : tensor<8x64xf32>, tensor<2x64xf32>, tensor<2x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$query, XF_Activation:$key, XF_Activation:$value,
    Optional<Index>:$window, Optional<XF_Activation>:$slopes, Optional<XF_StoredVector>:$sinks,
    F32Attr:$scale, OptionalAttr<F32Attr>:$softcap, UnitAttr:$rounded, UnitAttr:$bidirectional,
    OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` $scale (`softcap` $softcap^)? (`window` $window^)?
    (`bidirectional` $bidirectional^)? (`slopes` $slopes^ `:` type($slopes))? (`rounded` $rounded^)?
    (`sinks` $sinks^ `:` type($sinks))? (`run` $run^)? attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def XF_ConvOp : XF_ContextualOp<"conv", [AllTypesMatch<["data", "result"]>], ["getReach"]> {
  let summary = "a causal convolution over positions, for each channel separately";
  let description = [{
    `y_c = Σ_{i<k} W[c, k − 1 − i] x_c(p − i)`, where tokens before the first one are zero.
    Positions count the tokens that the run has seen, not absolute positions.

    - C1: x is (channels), W (channels, k).

    ```mlir
    %y = xf.conv %K, %x : tensor<640x4xf32>, tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_StoredMatrix:$weight, XF_Activation:$data, OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$weight `,` $data (`run` $run^)? attr-dict `:` type($weight) `,` type($data)";
  let hasVerifier = 1;
}

def XF_ScanOp : XF_ContextualOp<"scan", [SameOperandsAndResultType], ["getCarried"]> {
  let summary = "a gated linear recurrence: `h_p = a_p ⊙ h_{p−1} + b_p`, from 0";
  let description = [{
    The state is a single vector for a context of any length. `p − 1` is the previous token of the
    run, not an absolute position.

    ```mlir
    %h = xf.scan %a, %b : tensor<640xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$gate, XF_Activation:$input, OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$gate `,` $input (`run` $run^)? attr-dict `:` type($result)";
}

def XF_DecayingMeanOp : XF_ContextualOp<"decaying_mean", [SameOperandsAndResultType],
                                        ["getCarried"]> {
  let summary = "a mean over the tokens, in which the weights of earlier ones decay";
  let description = [{
    Entry by entry, a token's value v has the weight `e^k` in the means of later tokens, and
    `e^(k + b)` in its own:

        y_p = (N_{p−1} + e^{k_p + b_p} v_p) / (D_{p−1} + e^{k_p + b_p})
        N_p = e^{d_p} N_{p−1} + e^{k_p} v_p,   D_p = e^{d_p} D_{p−1} + e^{k_p}

    from N = D = 0. What is carried is `e^{−M} N`, `e^{−M} D` and M, the exponent of the largest weight
    so far, so that no weight overflows. `p − 1` is the token that the run saw before, not an
    absolute position.

    ```mlir
    // RWKV's mixer.
    %y = xf.decaying_mean %k, %v decay %d own %b : tensor<768xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$key, XF_Activation:$value, XF_Activation:$decay,
    XF_Activation:$own, OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $key `,` $value `decay` $decay `own` $own (`run` $run^)? attr-dict `:` type($result)
  }];
}

def XF_LinearAttentionOp : XF_ContextualOp<"linear_attention", [
    AttrSizedOperandSegments, AllTypesMatch<["value", "result"]>], ["getCarried"]> {
  let summary = "attention without a softmax: a matrix to which each token adds, and which decays";
  let description = [{
    Each head h has a state S, (K, V), which is 0 before the first token:

        S_p = diag(a) S_{p−1} + k uᵀ,   y_h = S_pᵀ q

    with the query q and the key k of the group `g(h) = ⌊h G / H⌋`, and the decays a of its K rows.
    u is the head's value v. With `delta` b it is `b_h (v − (diag(a) S_{p−1})ᵀ k)`, the delta rule:
    what S already gives for the key is replaced.

    `decay` d has a number for each head, or for each row of its state: `a = exp(d)`. With `rates` A,
    which have one of these forms as well, `a = exp(−exp(A) d)`; d is then a step of time.
    `p − 1` is the token that the run saw before, not an absolute position.

    - C1: q and k are (G, K), v (H, V), and G divides H.
    - C2: the decay and the rates are (H) or (H, K).
    - C3: b is (H).

    ```mlir
    // Mamba 2's mixer: 24 heads, of which all share one B and C.
    %y = xf.linear_attention %C, %B, %dtu decay %dt rates %A : tensor<24xf32> : tensor<1x128xf32>, tensor<1x128xf32>, tensor<24x64xf32>, tensor<24xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$query, XF_Activation:$key, XF_Activation:$value,
    XF_Activation:$decay, Optional<XF_Stored>:$rates, Optional<XF_Activation>:$delta,
    OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `decay` $decay (`rates` $rates^ `:` type($rates))?
    (`delta` $delta^ `:` type($delta))? (`run` $run^)? attr-dict `:`
    type($query) `,` type($key) `,` type($value) `,` type($decay)
  }];
  let hasVerifier = 1;
}

def XF_OpaqueContextualOp : XF_ContextualOp<"contextual"> {
  let summary = "any other op that reads the context; it can be analysed, but not run";
  let description = [{
    This stands for a contextual op that xf does not have. The block around it can still be checked,
    since the analyses only need to know that its result depends on the context.

    - C1: the name has no control characters.

    ```mlir
    %r = xf.contextual "retention"(%q, %k, %v) : (tensor<640xf32>, tensor<640xf32>, tensor<640xf32>) -> tensor<640xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<XF_Value>:$operands, OptionalAttr<XF_Run>:$run);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$name `(` $operands `)` (`run` $run^)? attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

#endif // CTXC_XF_CONTEXTUAL_OPS_TD
