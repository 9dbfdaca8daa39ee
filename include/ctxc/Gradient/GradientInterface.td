#ifndef CTXC_GRADIENT_GRADIENTINTERFACE_TD
#define CTXC_GRADIENT_GRADIENTINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::ctxc::gradient";
  let description = [{
    An op through which a gradient is pulled back. Ops of xf get it as external
    models (registerGradientModels); an op of another dialect joins in the same
    way.
  }];
  let methods = [
    InterfaceMethod<[{Computes the op's results from its operands, for all tokens.}],
      "::llvm::Error", "evaluate", (ins "::ctxc::gradient::Tape &":$tape)>,
    InterfaceMethod<[{Adds to the gradients of the operands, given that of each result.}],
      "::llvm::Error", "pullBack", (ins "::ctxc::gradient::Tape &":$tape)>
  ];
}

#endif // CTXC_GRADIENT_GRADIENTINTERFACE_TD
