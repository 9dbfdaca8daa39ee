#ifndef CTXC_XF_ATTRS_TD
#define CTXC_XF_ATTRS_TD

include "dialects/XF/XFDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def XF_Run : I32EnumAttr<"Run", "one of the two runs of a token", [
  I32EnumAttrCase<"full", 0>,   // with the context
  I32EnumAttrCase<"reduced", 1> // without it, on patched weights
]> { let cppNamespace = "::ctxc::xf"; }

def XF_NormKind : I32EnumAttr<"NormKind", "what a normalisation divides by", [
  I32EnumAttrCase<"rms", 0>,    // x / √(mean x² + ε)
  I32EnumAttrCase<"layer", 1>,  // (x − mean x) / √(var x + ε)
  I32EnumAttrCase<"l2", 2>,     // x / √(Σ x² + ε)
  I32EnumAttrCase<"sum", 3>     // x / (Σ x + ε)
]> { let cppNamespace = "::ctxc::xf"; }

def XF_ActivationKind : I32EnumAttr<"ActivationKind", "an elementwise nonlinearity", [
  I32EnumAttrCase<"gelu", 0>,        // x Φ(x), by erf
  I32EnumAttrCase<"gelu_tanh", 1>,   // the tanh formula
  I32EnumAttrCase<"silu", 2>,
  I32EnumAttrCase<"relu", 3>,
  I32EnumAttrCase<"relu2", 4>,       // relu(x)²
  I32EnumAttrCase<"sigmoid", 5>,
  I32EnumAttrCase<"tanh", 6>,
  I32EnumAttrCase<"quick_gelu", 7>,  // x σ(1.702 x)
  I32EnumAttrCase<"exp", 8>,
  I32EnumAttrCase<"softplus", 9>,    // log(1 + eˣ)
  I32EnumAttrCase<"abs", 10>,
  I32EnumAttrCase<"sqrt", 11>,       // √max(x, 0)
  I32EnumAttrCase<"log", 12>         // log max(x, 2⁻¹²⁶)
]> { let cppNamespace = "::ctxc::xf"; }

def XF_NarrowType : I32EnumAttr<"NarrowType", "a type with fewer digits than float32", [
  I32EnumAttrCase<"bf16", 0>,
  I32EnumAttrCase<"f16", 1>
]> { let cppNamespace = "::ctxc::xf"; }

def XF_RotaryStyle : I32EnumAttr<"RotaryStyle", "which entries a rotation pairs", [
  I32EnumAttrCase<"half", 0>,        // i with i + n
  I32EnumAttrCase<"interleaved", 1>  // 2i with 2i + 1
]> { let cppNamespace = "::ctxc::xf"; }

def XF_RopeAttr : AttrDef<XF_Dialect, "Rope"> {
  let mnemonic = "rope";
  let summary = "the frequencies of a rotary embedding";
  let description = [{
    Stands for the `dims/2` numbers `f_i = base^(-2i/dims)`, i = 0 … dims/2 − 1,
    each divided by `linear` (linear scaling), or, with `llama3 = [factor,
    low_freq_factor, high_freq_factor, original_context]`, scaled by Llama 3's
    rule: unchanged below the short wavelength, divided by `factor` above the
    long one, interpolated between; or, with `yarn = [factor, beta_fast, beta_slow,
    original_context, truncate]`, by YaRN's: unchanged below the index i where the original context
    holds `beta_fast` turns, divided by `factor` above that of `beta_slow` turns, on a line between.
    `truncate`, 1 or 0, rounds the two indices outwards.

    ```mlir
    #xf.rope<base = 1.000000e+06, dims = 256, linear = 8.000000e+00>
    ```
  }];
  let parameters = (ins
    "::mlir::FloatAttr":$base, "int64_t":$dims, "::mlir::FloatAttr":$linear,
    "::mlir::DenseF64ArrayAttr":$llama3, "::mlir::DenseF64ArrayAttr":$yarn);
  let builders = [AttrBuilder<(ins "double":$base, "int64_t":$dims,
      CArg<"double", "1.0">:$linear, CArg<"::llvm::ArrayRef<double>", "{}">:$llama3,
      CArg<"::llvm::ArrayRef<double>", "{}">:$yarn)>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dims/2 frequencies, in float64.
    ::llvm::SmallVector<double> getFrequencies() const;
  }];
}

#endif // CTXC_XF_ATTRS_TD
