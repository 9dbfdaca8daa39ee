#ifndef CTXC_XF_TYPES_TD
#define CTXC_XF_TYPES_TD

include "dialects/XF/XFDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

//===----------------------------------------------------------------------===//
// Types: the values of a token, and the tensors of a checkpoint
//===----------------------------------------------------------------------===//

// In the order of ctxc/Support/BlockFormats.def.
def XF_BlockFormat : I32Enum<"BlockFormat", "how a block of numbers is stored", [
  I32EnumCase<"q4_0", 0>, I32EnumCase<"q4_1", 1>, I32EnumCase<"q5_0", 2>, I32EnumCase<"q5_1", 3>,
  I32EnumCase<"q8_0", 4>, I32EnumCase<"q4_k", 5>, I32EnumCase<"q5_k", 6>, I32EnumCase<"q6_k", 7>,
  I32EnumCase<"block_mxfp4", 8>,
  // These formats keep their scales in a tensor of their own.
  I32EnumCase<"f8e4m3", 9>, I32EnumCase<"mxfp4", 10>
]> { let cppNamespace = "::ctxc::xf"; }

def XF_QuantizedType : TypeDef<XF_Dialect, "Quantized"> {
  let mnemonic = "quantized";
  let summary = "an element of a quantised matrix";
  let description = [{
    The rows of the matrix are stored in blocks of elements that share their scales; each row has a
    whole number of blocks. Such a matrix is never written: a patch of it stays separate, as
    factors.

    GGUF's formats keep a block's scales inside the block. Two other formats keep them in a second
    stored tensor: `f8e4m3`, where 128 × 128 elements share a scale (DeepSeek-V3's checkpoints), and
    `mxfp4`, where 32 elements of a row share a power of two (gpt-oss's checkpoints; GGUF's form of
    it is `block_mxfp4`).

    ```mlir
    %W = xf.param "mlp.down_proj.weight" : tensor<640x2048x!xf.quantized<q6_k>>
    ```
  }];
  let parameters = (ins EnumParameter<XF_BlockFormat>:$format);
  let assemblyFormat = "`<` $format `>`";
  let extraClassDeclaration = [{
    int64_t getBlockElements() const;
    int64_t getBlockBytes() const;
    /// The bytes of a tensor of such elements.
    static int64_t bytesOf(::mlir::RankedTensorType type);
    /// The blocks in a GPU's memory. Where the scales are a stored tensor of their own, these blocks
    /// have 32 elements of a row with their scale in front: `f8e4m3` a float32, `mxfp4` a byte and
    /// the order of `block_mxfp4`.
    int64_t getDeviceBlockElements() const;
    int64_t getDeviceBlockBytes() const;
    static int64_t deviceBytesOf(::mlir::RankedTensorType type);
  }];
}

// Every tensor has a known size and at least one entry, so that no algorithm has to handle other
// tensors.
class XF_Sized<Type type, string summary>
    : ConfinedType<type, [CPred<"::ctxc::xf::isSized($_self)">], summary>;

def XF_Activation : XF_Sized<StaticShapeTensorOf<[F32]>,
  "a value of a token (an f32 tensor of one or more dimensions, fixed and not 0)">;
def XF_Stored : XF_Sized<StaticShapeTensorOf<[F32, BF16, F16]>,
  "a stored tensor (f32, bf16 or f16, of one or more dimensions, fixed and not 0)">;
def XF_Parameter : XF_Sized<StaticShapeTensorOf<[F32, BF16, F16, XF_QuantizedType]>,
  "a stored tensor (f32, bf16, f16 or quantised, of one or more dimensions, fixed and not 0)">;
def XF_StoredVector : XF_Sized<1DTensorOf<[F32, BF16, F16]>,
  "a stored vector (f32, bf16 or f16, of a fixed size that is not 0)">;
def XF_StoredMatrix : XF_Sized<2DTensorOf<[F32, BF16, F16, XF_QuantizedType]>,
  "a stored matrix (f32, bf16, f16 or quantised, of a fixed size that is not 0)">;
def XF_StoredBank : XF_Sized<3DTensorOf<[F32, BF16, F16, XF_QuantizedType]>,
  "a stored bank of matrices (three dimensions, fixed and not 0; f32, bf16, f16 or quantised)">;
def XF_Indices : XF_Sized<1DTensorOf<[I32]>, "a vector of indices (i32, of a fixed size that is not 0)">;
def XF_TokenId : 0DTensorOf<[I32]> {
  let summary = "one number of a token (tensor<i32>)";
}
/// Every type that an op of a block may read or return.
def XF_Value : AnyTypeOf<[Index, F32, XF_TokenId, XF_Sized<AnyTensor, "a tensor of fixed size">],
  "a tensor of one or more dimensions, fixed and not 0, or a number">;

#endif // CTXC_XF_TYPES_TD
