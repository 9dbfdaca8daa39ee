#ifndef CTXC_XF_INTERFACES_TD
#define CTXC_XF_INTERFACES_TD

include "mlir/IR/OpBase.td"

// The interfaces through which ops explain themselves to the analyses. Ops of other dialects
// implement them as well, directly or as external models.

def XF_ContextualOpInterface : OpInterface<"ContextualOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op whose result for a token also reads the tokens before it: here `A(C, x)` begins to depend
    on the context C. Every result depends on the context.

    What the op keeps of earlier tokens is its *state*: some tensors for each token (for attention,
    its keys and its values), or one tensor that each token changes (for a recurrence).
  }];
  let methods = [
    InterfaceMethod<"The operands whose per-token values the op remembers, one state tensor each.",
      "::llvm::SmallVector<::mlir::Value>", "getStateOperands">,
    InterfaceMethod<"The run whose state it reads; none if there is only one run.",
      "::std::optional<::ctxc::xf::Run>", "getStateRun">,
    InterfaceMethod<"Makes the op read the state of `run`, in a block that contains both runs.",
      "void", "setStateRun", (ins "::ctxc::xf::Run":$run)>,
    InterfaceMethod<[{The type of what the op carries from token to token, where that is all of its state;
      null where it keeps its state operands of each token. Null by default.}],
      "::mlir::RankedTensorType", "getCarried", (ins), /*methodBody=*/"", "return {};">,
    InterfaceMethod<[{How many tokens, its own included, the op reads at most, where that is no setting.
      None by default.}],
      "::std::optional<int64_t>", "getReach", (ins), /*methodBody=*/"", "return std::nullopt;">
  ];
}

def XF_AssignableOpInterface : OpInterface<"AssignableOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op with a parameter that can be changed such that the op's output becomes any given target,
    while its data operand stays the same (the paper's Table 1). The change of a matrix has rank 1;
    any other change has the parameter's shape. The condition on the data operand is the obligation.
  }];
  let methods = [
    InterfaceMethod<"The operand that is the parameter.",
      "::mlir::OpOperand &", "getParameterOperand">,
    InterfaceMethod<"The operand that is the data.",
      "::mlir::OpOperand &", "getDataOperand">,
    InterfaceMethod<"The condition on the data operand under which every target can be reached.",
      "::ctxc::xf::Obligation", "getObligation">,
    InterfaceMethod<"The form of the parameter's change.",
      "::ctxc::xf::ChangeForm", "getChangeForm">,
    InterfaceMethod<"The paper's lemma that the assignment rests on, in each of its two roles.",
      "::llvm::StringRef", "getLemma", (ins "::ctxc::xf::ControlRole":$role)>,
    InterfaceMethod<[{Whether a change of the parameter reaches every target of the whole output. False
      where several vectors share the parameter, because each would need a change of its own.}],
      "bool", "coversOutput", (ins), /*methodBody=*/"", [{
        return ::ctxc::xf::coversWholeOutput($_op.getOperation());
      }]>,
    InterfaceMethod<[{The matrix that shares a change with this op, so that nothing is divided by a small
      entry of the data: for the scale of `(offset + m) ⊙ Norm_rms(W h)`, the matrix W, provided that no
      other op reads the values in between. Null by default.}],
      "::mlir::Operation *", "findNormMatrix", (ins), /*methodBody=*/"", "return nullptr;">
  ];
}

def XF_SolvableOpInterface : OpInterface<"SolvableOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A link of an output chain: given the op's output and all operands except one, the op can be
    solved for that operand, for *every* output. Ops whose image is not the whole space (norms,
    caps, relu) cannot be solved, and say why.
  }];
  let methods = [
    InterfaceMethod<[{How the op is solved for operand `index`: Exact, Conditional (other operands
      must be nonzero), or No. `reason` is set for No.}],
      "::ctxc::xf::Solvability", "getSolvability", (ins "unsigned":$index, "std::string &":$reason)>,
    InterfaceMethod<[{Builds the value of operand `index` for which the result equals `target`, where the
      other operands are `operands` (entry `index` of which is ignored). Call it only where the op is
      solvable.}],
      "::mlir::Value", "buildSolve",
      (ins "::mlir::OpBuilder &":$builder, "unsigned":$index, "::mlir::Value":$target,
           "::mlir::ValueRange":$operands)>,
    InterfaceMethod<[{The conditions on the other operands, where solvability is Conditional. The default
      is that none of them has a zero entry. `split` says which solution is chosen where there are
      several.}],
      "::llvm::SmallVector<::ctxc::xf::LinkCondition>", "getConditions",
      (ins "unsigned":$index, "::ctxc::xf::Split":$split), /*methodBody=*/"", [{
        return ::ctxc::xf::nonzeroFactors($_op.getOperation(), index);
      }]>,
    InterfaceMethod<[{Whether several values of operand `index` give the same output, so that buildSplit
      must choose one of them.}],
      "bool", "isUnderdetermined", (ins "unsigned":$index), /*methodBody=*/"", [{ return false; }]>,
    InterfaceMethod<[{Like buildSolve, but as a change of the operand's current value `operands[index]`.
      The change is split over the operand's first dimension, of n entries: evenly where `leverage` is
      null, otherwise such that Σ_j ‖change_j‖² / leverage_j is least, where `leverage` is tensor<n>.}],
      "::mlir::Value", "buildSplit",
      (ins "::mlir::OpBuilder &":$builder, "unsigned":$index, "::mlir::Value":$target,
           "::mlir::ValueRange":$operands, "::mlir::Value":$leverage), /*methodBody=*/"", [{
        return $_op.buildSolve(builder, index, target, operands);
      }]>
  ];
}

def XF_FactsOpInterface : OpInterface<"FactsOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    Derives the facts of an op's results from the facts of its operands; see `Facts`. Without this
    interface nothing is known about an op's results.
  }];
  let methods = [
    InterfaceMethod<"Facts of result 0.", "::ctxc::xf::Facts", "inferFacts",
      (ins "::llvm::ArrayRef<::ctxc::xf::Facts>":$operands)>,
    InterfaceMethod<[{The terms whose sum is result 0, entry by entry in row-major order, so that the
      analysis can cancel terms. Empty where the result is not a sum.}],
      "::llvm::SmallVector<::ctxc::xf::SumTerm>", "getSumTerms", (ins), /*methodBody=*/"",
      [{ return {}; }]>
  ];
}

def XF_ReachOpInterface : OpInterface<"ReachOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    How far patches can move an op's result, given how far they can move its operands: an upper
    bound, on which rejections rest (Theorem 4, "impossibility", and its relatives). The result of
    an op without this interface is assumed to reach every value that its facts allow.
  }];
  let methods = [
    InterfaceMethod<[{The reach of result 0, where at least one operand is not fixed. An operand that is
      a patchable parameter is free. `facts` are the operands' facts.}],
      "::ctxc::xf::Reach", "inferReach", (ins "::llvm::ArrayRef<::ctxc::xf::Reach>":$operands,
                                              "::llvm::ArrayRef<::ctxc::xf::Facts>":$facts)>
  ];
}

#endif // CTXC_XF_INTERFACES_TD
