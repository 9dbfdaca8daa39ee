#ifndef CTXC_XF_MIXTURE_OPS_TD
#define CTXC_XF_MIXTURE_OPS_TD

// Mixtures of experts. XFOps.td includes this file after defining the classes that it uses. A
// mixture of E experts, of which k are active, is written
//
//   s = softmax(R z)     sel = top_k s     w = s[sel]     y = Σ_j w_j D_{sel_j} h_j
//
// Every value between the selection and the sum has one row for each active expert; such a row is a
// *slot*.

def XF_TopKOp : XF_PureOp<"top_k", [InferTypeOpAdaptor]> {
  let summary = "the indices of the k largest entries, in ascending order";
  let description = [{
    The order is that of the indices, not of the values: two runs that select the same experts thus
    have them in the same slots. Of equal entries, the one with the lower index counts as larger.

    With `groups`, the scores are divided into that many equal parts, and only entries of `keep`
    parts can be selected: those whose two largest entries have the largest sums (DeepSeek-V3's
    rule).

    - C1: the scores are a vector of E entries, and 1 ≤ k ≤ E.
    - C2: the groups divide E and have at least two entries each, and the kept groups have at least
      k entries; 1 ≤ keep ≤ groups.

    ```mlir
    %sel = xf.top_k %scores k 2 : tensor<8xf32>
    %near = xf.top_k %scores k 2 groups 4 keep 2 : tensor<8xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$scores, I64Attr:$k, DefaultValuedAttr<I64Attr, "1">:$groups,
    DefaultValuedAttr<I64Attr, "1">:$keep);
  let results = (outs XF_Indices:$result);
  let assemblyFormat = [{
    $scores `k` $k (`groups` $groups^ `keep` $keep)? attr-dict `:` type($scores)
  }];
}

def XF_GatherOp : XF_PureOp<"gather", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "entries, or rows, by index: `y_j = x_{sel_j}`";
  let description = [{
    Selects from an activation or from a stored tensor. If it is a stored matrix, such as the biases
    of experts, a patch can change the rows that xf.top_k selected, each to any target.

    - C1: x is a vector or a matrix.

    ```mlir
    %w = xf.gather %scores[%sel] : tensor<8xf32>, tensor<2xi32>
    %b = xf.gather %biases[%sel] : tensor<8x64xbf16>, tensor<2xi32>
    ```
  }];
  let arguments = (ins XF_Stored:$data, XF_Indices:$selected);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `[` $selected `]` attr-dict `:` type($data) `,` type($selected)";
}

def XF_ExpertLinearOp : XF_PureOp<"expert_linear", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_AssignableOpInterface, ["coversOutput"]>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_ReachOpInterface>]> {
  let summary = "the matrix of each selected expert: `y_j = W_{sel_j} x_j`";
  let description = [{
    `x` is one vector for all slots, or has a row for each slot. With `transposed`, the checkpoint
    stores `Wᵀ`, as (in, out), for every expert.

    - C1: the bank is (E, out, in), or (E, in, out) where transposed; x's last dimension is `in`.
    - C2: x is (in), or (k, in) for k selected experts.
    - C3: k ≤ E.

    ```mlir
    %up = xf.param "mlp.experts.*.up_proj.weight" : tensor<8x128x64xbf16>
    %u = xf.expert_linear %up[%sel] * %z : tensor<8x128x64xbf16>, tensor<2xi32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins XF_StoredBank:$bank, XF_Indices:$selected, XF_Activation:$data,
    UnitAttr:$transposed);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $bank `[` $selected `]` `*` $data (`transposed` $transposed^)? attr-dict
    `:` type($bank) `,` type($selected) `,` type($data)
  }];
}

def XF_CombineOp : XF_PureOp<"combine", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface,
                              ["getConditions", "isUnderdetermined", "buildSplit"]>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "a weighted sum over slots: `Σ_j w_j y_j`";
  let description = [{
    If it is solved for y, there are many solutions; `Split` says which one is taken.

    - C1: w is a vector of k entries, and y's first dimension is k.

    ```mlir
    %m = xf.combine %w, %y : tensor<2xf32>, tensor<2x64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$weights, XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$weights `,` $data attr-dict `:` type($weights) `,` type($data)";
}

def XF_OuterOp : XF_PureOp<"outer", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "one multiple of a vector for each slot: `y_j = w_j x`";
  let description = [{
    - C1: both are vectors.

    ```mlir
    %zs = xf.outer %w, %z : tensor<2xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins XF_Activation:$weights, XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$weights `,` $data attr-dict `:` type($weights) `,` type($data)";
}

#endif // CTXC_XF_MIXTURE_OPS_TD
