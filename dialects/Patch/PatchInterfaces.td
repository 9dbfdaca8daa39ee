#ifndef CTXC_PATCH_INTERFACES_TD
#define CTXC_PATCH_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Patch_PatchableOpInterface : OpInterface<"PatchableOpInterface"> {
  let cppNamespace = "::ctxc::patch";
  let description = [{
    An op of `xf::AssignableOpInterface` whose parameter's change can be formed and
    applied: its *patch* consists of *parts*, values of one token. The patch dialect attaches
    it to xf's ops as external models; an op of another dialect joins in the same way.

    `operands` are the op's own operands in the patched run, with the parameter as it is stored.
  }];
  let methods = [
    InterfaceMethod<"The types of the parts.",
      "::llvm::SmallVector<::mlir::Type>", "getPartTypes">,
    InterfaceMethod<"How the parts change the stored parameter.",
      "::ctxc::patch::PatchForm", "getPatchForm">,
    InterfaceMethod<[{The parts that bring the op's result to `request.target`. Also emits the op's
      obligation, counted under `request.index`.}],
      "::llvm::SmallVector<::mlir::Value>", "buildParts",
      (ins "::mlir::OpBuilder &":$builder, "const ::ctxc::patch::PatchRequest &":$request)>,
    InterfaceMethod<"Whether buildParts reads the result without the patch.",
      "bool", "formsFromResult", (ins), /*methodBody=*/"", [{ return true; }]>,
    InterfaceMethod<[{The op's result with its patch. `result` is the result without the patch, and is
      null unless appliesToResult.}],
      "::mlir::Value", "buildPatched",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::Value":$result,
           "::mlir::ValueRange":$parts)>,
    InterfaceMethod<[{Whether the patch is applied to the op's result (y + u (vᵀ z)); otherwise it is
      applied to its parameter.}],
      "bool", "appliesToResult", (ins), /*methodBody=*/"", [{ return false; }]>,
    InterfaceMethod<[{For a result of n slots, each of which has its own change: tensor<n>, the squared
      distance by which a change of norm 1 moves each slot. Null if it is the same for all slots.}],
      "::mlir::Value", "buildLeverage",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), /*methodBody=*/"",
      [{ return {}; }]>
  ];
}

#endif // CTXC_PATCH_INTERFACES_TD
