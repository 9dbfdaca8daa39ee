#ifndef CTXC_XF_SIZES_TD
#define CTXC_XF_SIZES_TD

include "mlir/IR/OpBase.td"

// Interfaces that few analyses use, in a separate header (Sizes.h). Ops of xf get them
// when the dialect is loaded; an op of another dialect joins by an external model.

def XF_ContextReadingOpInterface : OpInterface<"ContextReadingOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A contextual op whose result does not depend on the context for some attributes and operands,
    such as an attention whose window holds only the token itself. An op without this interface
    always reads the context.
  }];
  let methods = [
    InterfaceMethod<"Whether the result may differ with the context, given the facts `operands` of the operands.",
      "bool", "readsContext", (ins "::llvm::ArrayRef<::ctxc::xf::Facts>":$operands)>
  ];
}

def XF_SizesOpInterface : OpInterface<"SizesOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op whose sizes are related by more than equality, or also appear in its attributes. With this
    interface, a block can be rewritten with other sizes: every size n becomes f(n), with the same f
    for all ops.
  }];
  let methods = [
    InterfaceMethod<"The relations that f must keep.",
      "::llvm::SmallVector<::ctxc::xf::SizeRelation>", "getSizeRelations">,
    InterfaceMethod<"Changes the attributes that hold sizes. The types are still the old ones.",
      "void", "resize", (ins "::llvm::function_ref<int64_t(int64_t)>":$f)>
  ];
}

def XF_PartsOpInterface : OpInterface<"PartsOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A SolvableOpInterface op that moves entries, computes nothing, and can be solved for a part.

    - Its operand may be one of several parts of the result, as in a concatenation: solving for it
      gives the operand its part of the target. The result equals the target only if all other parts
      also get theirs; their values need not be known.
    - Its result may be a part of its operand, as in a slice: the other entries of the operand do not
      change. `buildSolve` takes the operand's current value from `operands`.
  }];
  let methods = [
    InterfaceMethod<"Whether operand `index` is a part of the result.",
      "bool", "isPartOfResult", (ins "unsigned":$index)>,
    InterfaceMethod<"Whether the result is a part of operand `index`.",
      "bool", "isPartOfOperand", (ins "unsigned":$index)>
  ];
}

def XF_MultipleOpInterface : OpInterface<"MultipleOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op whose result is a multiple of one of its operands, by a single number that depends on the
    others.
  }];
  let methods = [
    InterfaceMethod<"The operand of which the result is a multiple; none if there is no such operand.",
      "::std::optional<unsigned>", "getMultipliedOperand">
  ];
}

def XF_TapOpInterface : OpInterface<"TapOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A SolvableOpInterface op that reads the context, and whose result is `y = f ⊙ x + r`: x is the
    operand of its own token, f a known factor for each entry, and r depends only on other tokens.
    The solution for x is `x' = x + (t − y) ⊘ f` for any x and its y, so that r need not be known.
  }];
  let methods = [
    InterfaceMethod<"The operand x.", "unsigned", "getTokenOperand">,
    InterfaceMethod<"Builds f, of x's type, if the op's other operands are `operands`.",
      "::mlir::Value", "buildFactor",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>
  ];
}

#endif // CTXC_XF_SIZES_TD
