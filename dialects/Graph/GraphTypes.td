#ifndef CTXC_GRAPH_TYPES_TD
#define CTXC_GRAPH_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::ctxc::graph";
  let summary = "a PyTorch program, as torch.export writes it";
  let description = [{
    A program on whole sequences: `graph.call` stands for any op of PyTorch, with PyTorch's names for
    the op and its arguments. `ctxc` reads an exported program into this dialect, finds which axis of each value
    is the axis of the tokens (`--graph-report-token-axes`), and raises everything that is computed for
    each token by itself to `xf` (`--graph-raise`).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::ctxc::xf::XFDialect"];
  let hasOperationAttrVerify = 1;
}

def Graph_TensorType : TypeDef<Graph_Dialect, "Symbolic"> {
  let mnemonic = "tensor";
  let summary = "a tensor of PyTorch, whose sizes may be expressions";
  let description = [{
    A size is a number or the text of an expression over symbols such as the number of tokens. Two
    sizes are equal if their texts are.

    - C1: no number is negative, and no expression is empty.

    ```mlir
    !graph.tensor<[1, "s0", 64], f32>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$sizes, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getSizes().size(); }
    /// The number that size `axis` is, or none if it is an expression.
    std::optional<int64_t> getNumber(unsigned axis) const;
  }];
}

def Graph_OperandAttr : AttrDef<Graph_Dialect, "Operand"> {
  let mnemonic = "operand";
  let summary = "an argument that is the call's operand of this number";
  let parameters = (ins "unsigned":$index);
  let assemblyFormat = "`<` $index `>`";
}

#endif // CTXC_GRAPH_TYPES_TD
