#ifndef CTXC_XF_INTERFACES_TD
#define CTXC_XF_INTERFACES_TD

include "mlir/IR/OpBase.td"

// How ops explain themselves to the analyses. An op of another dialect joins by
// implementing these, also from outside by an external model.

def XF_ContextualOpInterface : OpInterface<"ContextualOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op whose result at a token also reads the tokens before it: the `A` of
    `A(C, x)` starts here. Every result depends on the context.

    What it remembers of earlier tokens is its *state*: some tensors a token
    (attention: its keys and its values).
  }];
  let methods = [
    InterfaceMethod<"The operands whose per-token values the op remembers, one state tensor each.",
      "::llvm::SmallVector<::mlir::Value>", "getStateOperands">,
    InterfaceMethod<"Which run's state it reads: empty for the only run, else the name of a stream.",
      "::llvm::StringRef", "getStateStream">,
    InterfaceMethod<[{Has the op read the state of the run `name`, full or reduced, where both
      are in one block.}],
      "void", "setStateStream", (ins "::llvm::StringRef":$name)>
  ];
}

def XF_AssignableOpInterface : OpInterface<"AssignableOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    An op with a parameter that, changed, brings the op's output to any target
    while its data operand stays as it is (the paper's Table 1). The change is rank 1 for a
    matrix and of the parameter's own shape otherwise; the condition on the data is the
    obligation.
  }];
  let methods = [
    InterfaceMethod<"The operand that is the parameter.",
      "::mlir::OpOperand &", "getParameterOperand">,
    InterfaceMethod<"The operand that is the data.",
      "::mlir::OpOperand &", "getDataOperand">,
    InterfaceMethod<"What must hold of the data operand for every target to be reachable.",
      "::ctxc::xf::Obligation", "getObligation">,
    InterfaceMethod<"The form of the parameter's change.",
      "::ctxc::xf::ChangeForm", "getChangeForm">,
    InterfaceMethod<"The paper's lemma that the assignment rests on, in each of its two roles.",
      "::llvm::StringRef", "getLemma", (ins "::ctxc::xf::ControlRole":$role)>,
    InterfaceMethod<[{Whether a change of the parameter reaches every target of the whole output.
      False where one change serves several vectors, which need one each.}],
      "bool", "coversOutput", (ins), /*methodBody=*/"", [{
        return ::ctxc::xf::coversWholeOutput($_op.getOperation());
      }]>,
    InterfaceMethod<[{The matrix that shares a change with this op, so that a small entry of the data
      divides nothing: W of `(offset + m) ⊙ Norm_rms(W h)` for that scale, where nothing else reads
      what is in between. Null by default.}],
      "::mlir::Operation *", "findNormMatrix", (ins), /*methodBody=*/"", "return nullptr;">
  ];
}

def XF_SolvableOpInterface : OpInterface<"SolvableOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    A link of an output chain: given the op's output and all operands but one,
    the op can be solved for that one, for *every* output. Ops whose image is
    not the whole space (norms, caps, relu) are not solvable and say why.
  }];
  let methods = [
    InterfaceMethod<[{How the op is solved for operand `index`: Exact, Conditional (other operands
      must be nonzero), or No. `reason` is set for No.}],
      "::ctxc::xf::Solvability", "getSolvability", (ins "unsigned":$index, "std::string &":$reason)>,
    InterfaceMethod<[{Builds the operand `index` that makes the result equal `target`, the other operands
      being `operands` (whose entry `index` is ignored). Call only where solvable.}],
      "::mlir::Value", "buildSolve",
      (ins "::mlir::OpBuilder &":$builder, "unsigned":$index, "::mlir::Value":$target,
           "::mlir::ValueRange":$operands)>,
    InterfaceMethod<[{What must hold of the other operands, where solvability is Conditional. By
      default none of them has a zero entry. `split` is the choice of a solution where there are
      several.}],
      "::llvm::SmallVector<::ctxc::xf::LinkCondition>", "getConditions",
      (ins "unsigned":$index, "::ctxc::xf::Split":$split), /*methodBody=*/"", [{
        return ::ctxc::xf::nonzeroFactors($_op.getOperation(), index);
      }]>,
    InterfaceMethod<[{Whether several values of operand `index` give one output, so that a solution is
      a choice: buildSplit makes it.}],
      "bool", "isUnderdetermined", (ins "unsigned":$index), /*methodBody=*/"", [{ return false; }]>,
    InterfaceMethod<[{As buildSolve, by a change of the operand from its value `operands[index]` that is
      split over its first dimension, of n entries: evenly where `leverage` is null, else so that
      Σ_j ‖change_j‖² / leverage_j is least, `leverage` being tensor<n>.}],
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
    The zero and image facts of an op's results, from those of its operands; see
    `Facts`. An op without it has results of which nothing is known.
  }];
  let methods = [
    InterfaceMethod<"Facts of result 0.", "::ctxc::xf::Facts", "inferFacts",
      (ins "::llvm::ArrayRef<::ctxc::xf::Facts>":$operands)>,
    InterfaceMethod<[{The terms of which result 0 is the sum, number by number in row-major order, so
      that what cancels is seen to. Empty where it is none.}],
      "::llvm::SmallVector<::ctxc::xf::SumTerm>", "getSumTerms", (ins), /*methodBody=*/"",
      [{ return {}; }]>
  ];
}

def XF_ReachOpInterface : OpInterface<"ReachOpInterface"> {
  let cppNamespace = "::ctxc::xf";
  let description = [{
    How far patches can move an op's result, from how far they move its
    operands: an upper bound, on which rejections rest (Theorem 4,
    "impossibility", and its relatives). An op without it may be moved anywhere,
    but for the image that its facts give it.
  }];
  let methods = [
    InterfaceMethod<[{The reach of result 0, where not all operands are fixed. A parameter that may be
      patched is an operand that is free; `facts` are the operands'.}],
      "::ctxc::xf::Reach", "inferReach", (ins "::llvm::ArrayRef<::ctxc::xf::Reach>":$operands,
                                              "::llvm::ArrayRef<::ctxc::xf::Facts>":$facts)>
  ];
}

#endif // CTXC_XF_INTERFACES_TD
