#ifndef CTXC_XF_ASSIGNABLE_OPS_TD
#define CTXC_XF_ASSIGNABLE_OPS_TD

// Ops with one parameter, which can be patched. XFOps.td includes this file after defining the
// classes that it uses.

class XF_AssignableOp<string mnemonic, list<string> methods = [], list<string> factsMethods = []>
    : XF_PureOp<mnemonic, [
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<XF_AssignableOpInterface, methods>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<XF_FactsOpInterface, factsMethods>,
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

def XF_BiasOp : XF_AssignableOp<"bias", [], ["getSumTerms"]> {
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

#endif // CTXC_XF_ASSIGNABLE_OPS_TD
