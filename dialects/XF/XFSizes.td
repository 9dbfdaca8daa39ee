#ifndef CTXC_XF_SIZES_TD
#define CTXC_XF_SIZES_TD

include "mlir/IR/OpBase.td"

// Interfaces that few analyses ask, in a header of their own (Sizes.h). Ops of xf
// get them when the dialect is loaded; an op of another dialect joins by an external model.

def XF_ContextReadingOpInterface : OpInterface<"ContextReadingOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A contextual op that may, for some attributes and operands, give what it gives without any
    context: an attention whose window holds the token alone. One without this interface always
    reads the context.
  }];
  let methods = [
    InterfaceMethod<"Whether the result may differ with the context, where `operands` are the facts of the operands.",
      "bool", "readsContext", (ins "::llvm::ArrayRef<::ctxc::xf::Facts>":$operands)>
  ];
}

def XF_SizesOpInterface : OpInterface<"SizesOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op whose sizes are related by more than equality, or are also in its attributes. With it a
    block can be written again with other sizes: every size n becomes f(n), the same for all ops.
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
    A SolvableOpInterface op that moves entries and computes nothing, and that is solved for a part.

    - Its operand may be one of several parts of the result, as in a concatenation: solved for it, the
      operand gets its part of the target. The result is the target only where all other parts get
      theirs, so that their values need not be known.
    - Its result may be a part of its operand, as in a slice: the other entries of the operand stay as
      they are. `buildSolve` takes the operand's present value from `operands`.
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
    An op whose result is a multiple of one of its operands, by a single number that the others give.
  }];
  let methods = [
    InterfaceMethod<"The operand of which the result is a multiple; none where it is of no single one.",
      "::std::optional<unsigned>", "getMultipliedOperand">
  ];
}

def XF_TapOpInterface : OpInterface<"TapOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A SolvableOpInterface op that reads the context, and whose result is `y = f ⊙ x + r`: x is its
    token's own, f a known factor for each entry, and r depends on other tokens alone. Solved for x,
    `x' = x + (t − y) ⊘ f` for any x and the y of that x, so that r need not be known apart.
  }];
  let methods = [
    InterfaceMethod<"The operand x.", "unsigned", "getTokenOperand">,
    InterfaceMethod<"Builds f, of x's type, where the other operands are `operands`.",
      "::mlir::Value", "buildFactor",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>
  ];
}

#endif // CTXC_XF_SIZES_TD
