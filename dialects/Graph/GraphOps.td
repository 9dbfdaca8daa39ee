#ifndef CTXC_GRAPH_OPS_TD
#define CTXC_GRAPH_OPS_TD

include "dialects/Graph/GraphTypes.td"
include "dialects/XF/XFInterfaces.td"
include "dialects/XF/XFTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Graph_Op<string mnemonic, list<Trait> traits = []> : Op<Graph_Dialect, mnemonic, traits>;

def Graph_ProgramOp : Graph_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "one exported program";
  let description = [{
    `tokens` is the size of the tokens' axis: a number, or a symbol. `positions` n says that the program is another one at
    position n and later.

    - C1: the body ends in a `graph.return`, and has no arguments.
    - C2: no two inputs and no two stored tensors have the same name.

    ```mlir
    graph.program @model tokens "s0" {
      %x = graph.input "x" as "activation" : !graph.tensor<[1, "s0", 64], f32>
      graph.return %x : !graph.tensor<[1, "s0", 64], f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, AnyAttrOf<[StrAttr, I64Attr]>:$tokens,
    OptionalAttr<I64Attr>:$positions);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `tokens` $tokens (`positions` $positions^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Graph_InputOp : Graph_Op<"input", [Pure]> {
  let summary = "an input of the program";
  let description = [{
    - C1: `role` is "token" (an id for each token), "position" (each token's position) or "activation".

    ```mlir
    %ids = graph.input "input_ids" as "token" : !graph.tensor<[1, "s0"], si64>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$role);
  let results = (outs Graph_TensorType:$result);
  let assemblyFormat = "$name `as` $role attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Graph_StoredOp : Graph_Op<"stored", [Pure]> {
  let summary = "a stored tensor";
  let description = [{
    With `fixed` it is a buffer or a constant, which is not trained; with `loaded` too, its numbers come with the
    weights, which are not in the file. `value` has its numbers if they are part of the
    program and have a type that weights do not have, such as the entries of a mask.

    - C1: the name is neither empty nor has control characters.
    - C2: the numbers are in float64, and of the tensor's shape.

    ```mlir
    %W = graph.stored "layers.0.mlp.up.weight" : !graph.tensor<[128, 64], f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$fixed, UnitAttr:$loaded,
    OptionalAttr<F64ElementsAttr>:$value);
  let results = (outs Graph_TensorType:$result);
  let assemblyFormat = "$name (`fixed` $fixed^)? (`loaded` $loaded^)? (`is` $value^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The name of an attribute: the tensor's numbers are in the raised module, and not read with the weights.
    static constexpr ::llvm::StringLiteral inProgram{"in_program"};
  }];
  let hasVerifier = 1;
}

def Graph_CallOp : Graph_Op<"call", [Pure]> {
  let summary = "a call of an op of PyTorch";
  let description = [{
    `arguments` holds the arguments by the names of the op's schema: a tensor is `#graph.operand<i>`, an
    argument that was not given is absent, and a None in a list of tensors is `unit`. `path` is the
    module that made the call. `visible`, on a value that depends only on positions, says that this
    value, used as a mask, lets a token see another.

    - C1: the target is not empty, and neither it nor the path has control characters.
    - C2: the arguments name each operand at least once, and no other.

    ```mlir
    %y = graph.call "aten.softmax.int"(%x) {dim = -1 : i64, self = #graph.operand<0>} in "layers.0.attn"
       : (!graph.tensor<[1, "s0", "s0"], f32>) -> !graph.tensor<[1, "s0", "s0"], f32>
    ```
  }];
  let arguments = (ins StrAttr:$target, Variadic<Graph_TensorType>:$operands, DictionaryAttr:$arguments,
    StrAttr:$path, UnitAttr:$visible);
  let results = (outs Variadic<Graph_TensorType>:$results);
  let assemblyFormat = [{
    $target `(` $operands `)` $arguments `in` $path (`visible` $visible^)? attr-dict
    `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The argument `name`; null if it was not given.
    ::mlir::Attribute getArgument(::llvm::StringRef name) { return getArguments().get(name); }
    /// The tensor that is argument `name`; null if it is not a tensor.
    ::mlir::Value getTensor(::llvm::StringRef name);
    /// The op's name without namespace and overload: "softmax" of "aten.softmax.int".
    ::llvm::StringRef getBaseName();
  }];
}

def Graph_FunctionOp : Graph_Op<"function", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "a part of a program that defines how to run an op of xf";
  let description = [{
    If an op names this function in its attribute `graph.body`, the function of its operands is the op's meaning. `axes` has,
    for each argument, the axis of the tokens, or -1 for an argument that is the same for all tokens, such as a parameter;
    `result_axis` is the axis of the result. An `xf.contextual` is computed from all tokens of its run, any other op from
    the tokens of a step; of what positions and parameters alone make, it gets the entries at the tokens' positions.
    `counted` says that the program has no positions as input, and counts its tokens to get them.

    - C1: there is an axis for each argument, which is -1 or one of its axes, and the same holds for the result.
    - C2: the body ends in a `graph.return` of one value; otherwise it has only calls, inputs that are positions, and
      stored tensors that have their numbers.

    ```mlir
    graph.function @attn tokens "s0" axes [1, -1] result_axis 1 {
    ^bb0(%x: !graph.tensor<[1, "s0", 64], f32>, %W: !graph.tensor<[64, 64], f32>):
      %y = graph.call "aten.linear.default"(%x, %W) {input = #graph.operand<0>, weight = #graph.operand<1>} in ""
         : (!graph.tensor<[1, "s0", 64], f32>, !graph.tensor<[64, 64], f32>) -> !graph.tensor<[1, "s0", 64], f32>
      graph.return %y : !graph.tensor<[1, "s0", 64], f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, AnyAttrOf<[StrAttr, I64Attr]>:$tokens, DenseI64ArrayAttr:$axes,
    I64Attr:$result_axis, UnitAttr:$counted);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `tokens` $tokens `axes` $axes `result_axis` $result_axis (`counted` $counted^)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The function that is the meaning of `op`; null if it has none.
    static FunctionOp ofOp(::mlir::Operation *op);
    /// The name of the attribute that names it.
    static constexpr ::llvm::StringLiteral bodyName = "graph.body";
    /// The name of the attribute that says which op keeps an op with a body from being one of xf.
    static constexpr ::llvm::StringLiteral whyName = "graph.why";
  }];
}

def Graph_ReturnOp : Graph_Op<"return", [Pure, Terminator, ReturnLike, ParentOneOf<["ProgramOp", "FunctionOp"]>]> {
  let summary = "the results of a program";
  let arguments = (ins Variadic<Graph_TensorType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Graph_OpaqueOp : Graph_Op<"opaque", [Pure, DeclareOpInterfaceMethods<XF_SolvableOpInterface>]> {
  let summary = "an op of PyTorch that xf does not have, for one token";
  let description = [{
    A function of its operands about which nothing is known: no output chain goes through it, and its result
    may be anything. It can be run if it has a `graph.body`. `why` says what would have to be known.

    - C1: neither text has control characters.

    ```mlir
    %y = graph.opaque "aten.cumprod.default" why "no op of xf is known for it" (%x) : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$target, StrAttr:$why, Variadic<XF_Value>:$operands);
  let results = (outs XF_Value:$result);
  let assemblyFormat = "$target `why` $why `(` $operands `)` attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

#endif // CTXC_GRAPH_OPS_TD
