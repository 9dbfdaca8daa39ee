#ifndef CTXC_LOWERING_INTERFACE_TD
#define CTXC_LOWERING_INTERFACE_TD

include "mlir/IR/OpBase.td"

def CtxcLinalgOpInterface : OpInterface<"LinalgLoweringOpInterface"> {
  let cppNamespace = "::ctxc";
  let description = [{
    An op that has a compiled form: it emits its meaning over S rows as linalg on
    tensors. Attached to the dialects' ops as external models by the lowering;
    an op of another dialect joins the same way.
  }];
  let methods = [
    InterfaceMethod<"Emits the op, reading operands from and binding results in the emitter.",
      "::mlir::LogicalResult", "lowerToLinalg", (ins "::ctxc::KernelEmitter &":$emitter)>
  ];
}

#endif // CTXC_LOWERING_INTERFACE_TD
