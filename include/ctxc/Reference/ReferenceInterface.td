#ifndef CTXC_REFERENCE_REFERENCEINTERFACE_TD
#define CTXC_REFERENCE_REFERENCEINTERFACE_TD

include "mlir/IR/OpBase.td"

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::ctxc::reference";
  let description = [{
    An op with a meaning in the reference: it computes its results for all
    tokens of a step, in float64. Ops of xf and patch get it as external models
    (registerReferenceModels); an op of another dialect joins in the same way.
  }];
  let methods = [
    InterfaceMethod<[{Computes the op's results from its operands, and reads or writes what
      surrounds the block: parameters, state, patches. The error says what is wrong with the
      values at hand, located by `errorAt`.}],
      "::llvm::Error", "evaluate", (ins "::ctxc::reference::Evaluation &":$evaluation)>
  ];
}

#endif // CTXC_REFERENCE_REFERENCEINTERFACE_TD
