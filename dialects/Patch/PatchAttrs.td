#ifndef CTXC_PATCH_ATTRS_TD
#define CTXC_PATCH_ATTRS_TD

include "mlir/IR/EnumAttr.td"

// As ctxc/Numerics/Updates.def lists them.
def Patch_UpdateKind : I32EnumAttr<"UpdateKind", "the update of a post-norm scale", [
  I32EnumAttrCase<"least", 0>, I32EnumAttrCase<"balanced", 1>, I32EnumAttrCase<"naive", 2>,
  I32EnumAttrCase<"stable", 3>, I32EnumAttrCase<"scaled", 4>
]> { let cppNamespace = "::ctxc::patch"; }

def Patch_Condition : I32EnumAttr<"Condition", "what an obligation requires of a value", [
  I32EnumAttrCase<"nonzero_vector", 0>, I32EnumAttrCase<"nonzero_elements", 1>
]> { let cppNamespace = "::ctxc::patch"; }

#endif // CTXC_PATCH_ATTRS_TD
