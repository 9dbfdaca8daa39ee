// The dialect: what its ops are, and which interfaces they implement. The methods are written in
// Gates.cpp (what the analyses ask) and GatesRun.cpp (what the two backends ask).
include "dialects/Patch/PatchInterfaces.td"
include "dialects/XF/XFInterfaces.td"
include "dialects/XF/XFTypes.td"
include "ctxc/Lowering/LoweringInterface.td"
include "ctxc/Reference/ReferenceInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Gates_Dialect : Dialect {
  let name = "gates";
  let cppNamespace = "::gates";
  let summary = "gates between two streams";
  let dependentDialects = ["::ctxc::patch::PatchDialect", "::ctxc::xf::XFDialect"];
}

class Gates_Op<string mnemonic, list<Trait> traits> : Op<Gates_Dialect, mnemonic, traits # [
    Pure,
    DeclareOpInterfaceMethods<XF_FactsOpInterface>,
    DeclareOpInterfaceMethods<XF_SolvableOpInterface>,
    DeclareOpInterfaceMethods<ReferenceOpInterface>,
    DeclareOpInterfaceMethods<CtxcLinalgOpInterface>]>;

def Gates_MixOp : Gates_Op<"mix", [SameOperandsAndResultType]> {
  let summary = "`y = σ(s) ⊙ a + (1 − σ(s)) ⊙ b`: a highway gate";
  let arguments = (ins XF_Activation:$gate, XF_Activation:$lhs, XF_Activation:$rhs);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs `by` $gate attr-dict `:` type($result)";
}

def Gates_SoftsignOp : Gates_Op<"softsign", [SameOperandsAndResultType]> {
  let summary = "`y = x / (1 + |x|)`: a bounded activation";
  let arguments = (ins XF_Activation:$data);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data attr-dict `:` type($data)";
}

def Gates_ShiftOp : Gates_Op<"shift", [
    AllTypesMatch<["data", "result"]>,
    DeclareOpInterfaceMethods<XF_AssignableOpInterface>,
    DeclareOpInterfaceMethods<Patch_PatchableOpInterface>]> {
  let summary = "`y = x + rate · b`: a bias that learns at a rate of its own";
  let arguments = (ins XF_Activation:$data, XF_Stored:$bias, F32Attr:$rate);
  let results = (outs XF_Activation:$result);
  let assemblyFormat = "$data `+` $bias `rate` $rate attr-dict `:` type($data) `,` type($bias)";
  let hasVerifier = 1;
}
