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

class XF_ElementwiseOp<string mnemonic, list<Trait> traits = [], list<string> factsMethods = []>
    : XF_PureOp<mnemonic, !listconcat([SameOperandsAndResultType,
        DeclareOpInterfaceMethods<XF_FactsOpInterface, factsMethods>,
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
    - C3: it gives at least one value; inputs and all values of its ops are tensors of one or more
      dimensions, fixed and not 0, or single numbers.
    - C4: names have no control characters.

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
    From position n on, where `positions` n is given, the equations are others: the
    model is not run there.

    - C1: the body ends in an `xf.yield` of one value.
    - C2: every `xf.layer` names a block of the module with matching types.
    - C3: n is positive.
    - C4: the body has no arguments, and names have no control characters.

    ```mlir
    xf.model @m positions 4096 {
      …
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$positions);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`positions` $positions^)? attr-dict-with-keyword $body";
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
    - C4: names have no control characters.

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
  let arguments = (ins Variadic<XF_Value>:$values);
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
    - C2: what is quantised is a matrix, or a bank of matrices, whose rows have a whole number
      of blocks.
    - C3: the name has no control characters.

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

    - C1: the default, where there is one, is of the result's type, and finite.
    - C2: the name has no control characters.
    - C3: it has at most 2^24 numbers.

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

def XF_ConstantOp : XF_PureOp<"constant"> {
  let summary = "the same id for every token";
  let description = [{
    - C1: the id is not negative.

    ```mlir
    %first = xf.constant 0 : tensor<i32>
    ```
  }];
  let arguments = (ins I32Attr:$id);
  let results = (outs XF_TokenId:$result);
  let assemblyFormat = "$id attr-dict `:` type($result)";
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
// The rest, by what it does
//===----------------------------------------------------------------------===//

include "dialects/XF/XFAssignableOps.td"
include "dialects/XF/XFTokenOps.td"
include "dialects/XF/XFContextualOps.td"
include "dialects/XF/XFMixtureOps.td"

#endif // CTXC_XF_OPS_TD
