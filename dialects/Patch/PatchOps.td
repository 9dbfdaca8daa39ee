#ifndef CTXC_PATCH_OPS_TD
#define CTXC_PATCH_OPS_TD

include "dialects/Patch/PatchAttrs.td"
include "dialects/XF/XFTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Patch_Dialect : Dialect {
  let name = "patch";
  let cppNamespace = "::ctxc::patch";
  let summary = "ops that form and apply patches";
  let description = [{
    A *dual* block (made from an `xf.block` and a plan by `--patch-build-dual`)
    computes the full and the reduced run of a layer together: two runs of
    the same ops, and between them the ops of this dialect, which compute the
    target of each patched op, form its patch and apply it, so that the reduced
    run continues like the patched model. An *applied* block
    (`--patch-build-applied`) is a layer's ordinary forward with a given patch.

    Values are those of `xf`: each belongs to one token.
  }];
  let dependentDialects = ["::ctxc::xf::XFDialect"];
}

def Patch_Part : AnyTypeOf<[XF_Activation, XF_Indices]>;

class Patch_Op<string mnemonic, list<Trait> traits = []> : Op<Patch_Dialect, mnemonic, traits>;

def Patch_LinearsOp : Patch_Op<"linears", [Pure]> {
  let summary = "several vectors times a matrix that is read once: `y_i = W x_i`";
  let description = [{
    Made by `--patch-pack-linears` from `xf.linear` ops that share a weight, so that
    every byte of W is read once for both runs.

    - C1: as `xf.linear`, for each pair of data and result; all of the same types.
  }];
  let arguments = (ins XF_StoredMatrix:$weight, Variadic<XF_Activation>:$data, UnitAttr:$transposed);
  let results = (outs Variadic<XF_Activation>:$results);
  let assemblyFormat = [{
    $weight `*` `(` $data `)` (`transposed` $transposed^)? attr-dict `:` type($weight) `,`
    functional-type($data, $results)
  }];
  let hasVerifier = 1;
}

def Patch_ExpertLinearsOp : Patch_Op<"expert_linears", [Pure, SameVariadicOperandSize]> {
  let summary = "selected experts of a bank that is read once: `y_ij = W_{sel_ij} x_ij`";
  let description = [{
    What `patch.linears` is to `xf.linear`, for `xf.expert_linear`: an expert that is selected
    several times is read once.

    - C1: as `xf.expert_linear`, for each selection with its data and result; all of the same types.
  }];
  let arguments = (ins XF_StoredBank:$bank, Variadic<XF_Indices>:$selected,
                       Variadic<XF_Activation>:$data, UnitAttr:$transposed);
  let results = (outs Variadic<XF_Activation>:$results);
  let assemblyFormat = [{
    $bank `[` $selected `]` `*` `(` $data `)` (`transposed` $transposed^)? attr-dict
    `:` type($bank) `,` `(` type($selected) `)` `,` functional-type($data, $results)
  }];
  let hasVerifier = 1;
}

def Patch_Rank1Op : Patch_Op<"rank1", [Pure, AllTypesMatch<["target", "current", "u"]>,
                                       AllTypesMatch<["data", "v"]>]> {
  let summary = "the factors of `ΔW = (t − W z) zᵀ / ‖z‖²`";
  let description = [{
    `u = t − y`, `v = z / ‖z‖²` with `y = W z` the current output, so that
    `(W + u vᵀ) z = t` (Lemma "input controllability of MLPs"). If z = 0, the
    divisor is 1, as in the paper.
  }];
  let arguments = (ins XF_Activation:$target, XF_Activation:$current, XF_Activation:$data);
  let results = (outs XF_Activation:$u, XF_Activation:$v);
  let assemblyFormat = "`to` $target `from` $current `at` $data attr-dict `:` type($target) `,` type($data)";
}

def Patch_ApplyRank1Op : Patch_Op<"apply_rank1", [Pure, AllTypesMatch<["base", "u", "result"]>,
                                                  AllTypesMatch<["data", "v"]>]> {
  let summary = "`y + u (vᵀ z)`: a linear op's output with its patch";
  let arguments = (ins XF_Activation:$base, XF_Activation:$u, XF_Activation:$v, XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$base `+` $u `,` $v `at` $data attr-dict `:` type($base) `,` type($data)";
}

def Patch_ApplyExpertRank1Op : Patch_Op<"apply_expert_rank1", [Pure,
    AllTypesMatch<["base", "u", "result"]>, AllTypesMatch<["patched", "selected"]>]> {
  let summary = "`y_j + Σ_i u_i (v_iᵀ z_j)` over the i with patched_i = selected_j";
  let description = [{
    The output of an expert_linear that runs the experts `selected`, with a patch of the experts
    `patched`, each at most once; or of a gather, whose rows count as matrices of one column.

    - C1: base is (k, out), v (k, in), and the data (in) or (k, in), for k selected experts.
  }];
  let arguments = (ins XF_Activation:$base, XF_Activation:$u, XF_Activation:$v, XF_Indices:$patched,
    XF_Activation:$data, XF_Indices:$selected);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $base `+` $u `,` $v `for` $patched `at` $data `[` $selected `]` attr-dict
    `:` type($base) `,` type($v) `,` type($data) `,` type($selected)
  }];
  let hasVerifier = 1;
}

def Patch_SquaredNormsOp : Patch_Op<"squared_norms", [Pure]> {
  let summary = "`‖x_j‖²` of each vector along the last dimension";
  let description = [{ - C1: the result has the data's shape without the last dimension. }];
  let arguments = (ins XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data attr-dict `:` type($data) `->` type($result)";
  let hasVerifier = 1;
}

def Patch_ApplyDeltaOp : Patch_Op<"apply_delta", [Pure]> {
  let summary = "`p + Δp`: a parameter with its patch, in float32";
  let description = [{ - C1: delta and result have the parameter's shape. }];
  let arguments = (ins XF_Stored:$parameter, XF_Activation:$delta);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$parameter `+` $delta attr-dict `:` type($parameter) `,` type($delta) `->` type($result)";
  let hasVerifier = 1;
}

def Patch_InvertRmsNormOp : Patch_Op<"invert_rms_norm", [Pure, AllTypesMatch<["target", "data", "result"]>]> {
  let summary = "the target of a matrix before an RMS norm whose scale is patched too";
  let description = [{
    For a branch `(offset + m) ⊙ Norm(d)` that should be `g`: the output `h` that the
    matrix before the norm should have in place of `d`, chosen by `update` so that the
    remaining change of the scale is small (docs/updates.md; the paper's appendix
    "RMSNorm inversion" for stable and scaled).
  }];
  let arguments = (ins Patch_UpdateKind:$update, XF_Activation:$target, XF_StoredVector:$scale,
    XF_Activation:$data, F64Attr:$eps, DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $update `to` $target `by` $scale `from` $data `eps` $eps (`offset` $offset^)? attr-dict
    `:` type($target) `,` type($scale)
  }];
}

def Patch_SolveScaleOp : Patch_Op<"solve_scale", [AllTypesMatch<["target", "data"]>]> {
  let summary = "the change of a scale: `Δm = g ⊘ n − (offset + m)`";
  let description = [{
    With it, `(offset + m + Δm) ⊙ n = g`; `update scaled` gives the one best multiple of
    offset + m instead. 0/0 gives no change and is counted as harmless; if n_k = 0 and
    g_k ≠ 0, the divisor is 1 as in the paper, and this is counted as harmful. The counts
    are added to the obligation `index` of the run.

    - C1: target is (d) or (heads, d), m is (d) and so is the result; a shared scale
      has one target for all heads and is not solved here.
  }];
  let arguments = (ins Patch_UpdateKind:$update, XF_Activation:$target, XF_Stored:$scale,
    XF_Activation:$data, DefaultValuedAttr<F32Attr, "0.0f">:$offset, I64Attr:$index);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = [{
    $update `to` $target `by` $scale `at` $data (`offset` $offset^)? `counts` $index attr-dict
    `:` type($target) `,` type($scale) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Patch_ObligationOp : Patch_Op<"obligation"> {
  let summary = "counts where a condition of the plan fails";
  let description = [{
    Adds to the harmful count of obligation `index` the number of zero vectors along the
    last dimension, or of zero entries. With `change`, the change that each vector must make
    possible, a zero vector with a zero change is harmless. `lemma` names the lemma of the condition.

    - C1: only a nonzero_vector has a change, with a vector for each of the data's, or the data is
      one vector.
  }];
  let arguments = (ins Patch_Condition:$condition, XF_Activation:$data,
    Optional<XF_Activation>:$change, I64Attr:$index, StrAttr:$lemma);
  let assemblyFormat = [{
    $condition $data (`for` $change^)? `counts` $index $lemma attr-dict
    `:` type($data) (`,` type($change)^)?
  }];
  let hasVerifier = 1;
}

def Patch_SameSelectionOp : Patch_Op<"same_selection", [SameTypeOperands]> {
  let summary = "counts where the two runs made different selections";
  let description = [{
    Adds to the harmful count of obligation `index` the number of slots in which the full and
    the reduced run differ, although the router is patched to give the same scores:
    rounding may decide a near-tie differently.
  }];
  let arguments = (ins XF_Indices:$full, XF_Indices:$reduced, I64Attr:$index, StrAttr:$lemma);
  let assemblyFormat = "$full `,` $reduced `counts` $index $lemma attr-dict `:` type($full)";
}

def Patch_StoreOp : Patch_Op<"store"> {
  let summary = "stores the patch of a parameter: `u, v`, or `Δ`, or `u, v, selected`";
  let description = [{
    `parameter` is the block's name for the parameter, and the parts are those of the op that reads
    it (PatchableOpInterface). The orientation is the op's, not the file's: if the linear op is
    `transposed`, the writer of a patch file swaps u and v.
  }];
  let arguments = (ins StrAttr:$parameter, Variadic<Patch_Part>:$parts);
  let assemblyFormat = "$parameter $parts attr-dict `:` type($parts)";
  let hasVerifier = 1;
}

def Patch_LoadOp : Patch_Op<"load", [Pure]> {
  let summary = "loads the patch of a parameter: `u, v`, or `Δ`, or `u, v, selected`";
  let arguments = (ins StrAttr:$parameter);
  let results = (outs Variadic<Patch_Part>:$parts);
  let assemblyFormat = "$parameter attr-dict `:` type($parts)";
  let hasVerifier = 1;
}

#endif // CTXC_PATCH_OPS_TD
