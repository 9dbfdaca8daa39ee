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

// A pure function of its token. The result types follow from the operands' types.
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
  let summary = "one residual block, or any other section of a model";
  let description = [{
    `T(C, x)`: the body computes the block's outputs for one token from its inputs (one or several
    residual streams) and its parameters. Layers of the same structure share one block; the names of
    their parameters differ by the prefix of `xf.layer`.

    - C1: the operands of `xf.yield` have the block's result types.
    - C2: a block does not call layers.
    - C3: it returns at least one value; inputs and all values of its ops are tensors of one or more
      dimensions, each fixed and not 0, or single numbers.
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
    The body runs once for each token: `xf.token` is its id, `xf.position` its absolute position;
    `xf.layer` calls the blocks; `xf.yield` returns the logits. `positions` n says that the model
    must not be run at position n or later, because it has other equations there.

    - C1: the body ends in an `xf.yield` of one value.
    - C2: every `xf.layer` names a block of the module whose types match.
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
  let summary = "a call of a block with a layer's parameters and settings";
  let description = [{
    Runs `block` with the parameters whose names are `prefix` followed by the block's own names,
    unless `bind` gives another stored name for one of them, and with `settings` in place of the
    block's defaults. `frozen` lists parameters (by the block's names) that must not be patched in
    this layer.

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
    /// The value of the setting `setting` in this layer, which is the layer's own or the block's
    /// default.
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
    The tensor that the checkpoint stores under `name` (in a block: under the layer's prefix and
    `name`), in its stored shape and type. With `frozen`, no patch may change it. Two `xf.param`
    with the same name are one shared parameter.

    Verdicts hold for almost all numbers of parameters, trained or frozen. With `constant` too, the
    tensor is no parameter but a part of the program, such as a mask, whose numbers are not at hand:
    they may be zero, and a verdict holds whatever they are.

    A name with a `*` stands for several stored tensors, stacked along the first dimension: the
    tensor whose name has 0 in place of the star, then the one with 1, and so on.

    - C1: a name has at most one `*`, and then its type at least one dimension.
    - C2: a quantised parameter is a matrix, or a bank of matrices, whose rows consist of whole
      blocks.
    - C3: the name has no control characters.
    - C4: what is `constant` is `frozen`.

    ```mlir
    %W = xf.param "mlp.up_proj.weight" : tensor<2048x640xbf16>
    %down = xf.param "mlp.experts.*.down_proj.weight" : tensor<8x64x128xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$frozen, UnitAttr:$constant);
  let results = (outs XF_Parameter:$result);
  let assemblyFormat = [{
    $name (`frozen` $frozen^)? (`constant` $constant^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def XF_SettingOp : XF_PureOp<"setting", [DeclareOpInterfaceMethods<XF_FactsOpInterface>]> {
  let summary = "a number, or a vector of numbers, that may differ between layers";
  let description = [{
    Settings change the numbers of a layer, but not its structure: a window, the frequencies of a
    rotary embedding. Layers that differ only in settings therefore share one block and one kernel.
    An `index` setting takes an integer, an `f32` setting a float, a tensor setting an `#xf.rope` or
    dense elements.

    - C1: the default, if there is one, has the result's type and is finite.
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
    Of `replace`, these ids are another: as those of images, in whose place a model of text and images
    looks up an id of text.

    - C1: no id is negative.

    ```mlir
    %id = xf.token : tensor<i32>
    %word = xf.token replace [258880, 258881] by 0 : tensor<i32>
    ```
  }];
  let arguments = (ins DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$replaced, DefaultValuedAttr<I32Attr, "0">:$by);
  let results = (outs XF_TokenId:$result);
  let assemblyFormat = "(`replace` $replaced^ `by` $by)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The result for the token `id`.
    int64_t at(int64_t id) {
      return ::llvm::is_contained(getReplaced(), id) ? int64_t(int32_t(getBy())) : id;
    }
  }];
  let hasVerifier = 1;
}

def XF_PositionOp : XF_PureOp<"position"> {
  let summary = "the token's absolute position";
  let description = [{
    Positions are counted from 0 in the whole text. A patched run has not read the context, but
    still counts it: its token has the same position as in the full run. `plus` is an offset for
    tables whose first rows belong to no position; of `over` n the result is the quotient by n, rounded
    down. It is the row of a table, or a number.

    - C1: the offset is not negative, and the divisor is positive.
    - C2: the result is an id, or has one entry.

    ```mlir
    %p = xf.position plus 2 : tensor<i32>
    %x = xf.position over 16384 : tensor<1xf32>
    ```
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$offset, DefaultValuedAttr<I64Attr, "1">:$divisor);
  let results = (outs AnyTypeOf<[XF_TokenId, XF_Activation]>:$result);
  let assemblyFormat = "(`plus` $offset^)? (`over` $divisor^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The result for a token at `position`.
    int64_t at(int64_t position) {
      return (position + int64_t(getOffset())) / int64_t(getDivisor());
    }
  }];
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
// All other ops, by what they do
//===----------------------------------------------------------------------===//

include "dialects/XF/XFAssignableOps.td"
include "dialects/XF/XFTokenOps.td"
include "dialects/XF/XFContextualOps.td"
include "dialects/XF/XFMixtureOps.td"

#endif // CTXC_XF_OPS_TD
