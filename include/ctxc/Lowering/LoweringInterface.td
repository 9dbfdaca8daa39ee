#ifndef CTXC_LOWERING_INTERFACE_TD
#define CTXC_LOWERING_INTERFACE_TD

include "mlir/IR/OpBase.td"

def CtxcLinalgOpInterface : OpInterface<"LinalgLoweringOpInterface"> {
  let cppNamespace = "::ctxc";
  let description = [{
    An op that has a compiled form: it emits linalg on tensors that computes it for S rows. The
    lowering attaches it to the ops of its dialects as an external model; ops of other dialects join
    in the same way.
  }];
  let methods = [
    InterfaceMethod<"Emits the op, reading operands from and binding results in the emitter.",
      "::mlir::LogicalResult", "lowerToLinalg", (ins "::ctxc::KernelEmitter &":$emitter)>
  ];
}

#endif // CTXC_LOWERING_INTERFACE_TD
