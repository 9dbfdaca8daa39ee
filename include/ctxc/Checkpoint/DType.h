//===- DType.h - element types of stored tensors, and their roundings -----===//
//
// The element types that safetensors knows, in the order its writer sorts by
// (narrow types first), then quantised formats; and the conversions between the
// types of stored weights and float32 and float64, in which ctxc computes.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_DTYPE_H
#define CTXC_CHECKPOINT_DTYPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace ctxc {

enum class DType : uint8_t {
  Bool,
  F4,
  F6E2M3,
  F6E3M2,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) NAME,
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES) NAME,
#include "ctxc/Support/BlockFormats.def"
};

/// Whether elements are stored in blocks that share their scales.
constexpr bool isQuantized(DType dtype) { return dtype > DType::U64; }

/// Whether the scales are stored in a separate tensor. In the functions below, and wherever such a
/// stored parameter is passed on, a ctxc_scaled_matrix (Numerics/ScaledFormats.h) takes the place
/// of its bytes; for a bank, an array of them.
bool hasScalesApart(DType dtype);

/// Bits of one element: 4 for F4, 6 for the F6 types, otherwise a multiple of 8. Not for a
/// quantised type.
unsigned bitsOf(DType dtype);

/// How many elements are stored together in a whole number of bytes: a block of a quantised type,
/// otherwise 1. Not for F4 and the F6 types.
struct BlockSize {
  unsigned elements, bytes;
};
BlockSize blockSizeOf(DType dtype);

/// The bytes of `elements` elements, which must be whole blocks, without scales in another tensor.
inline uint64_t bytesOf(DType dtype, uint64_t elements) {
  BlockSize block = blockSizeOf(dtype);
  return elements / block.elements * block.bytes;
}

/// The address of entry `index` of the first dimension, each of `elements` elements. A tensor whose
/// scales are stored separately must have three dimensions or more.
const void *sliceOf(DType dtype, const void *stored, int64_t index, uint64_t elements);

/// The name in a safetensors header, such as "BF16", or GGUF's, such as "Q4_K".
llvm::StringRef nameOf(DType dtype);

/// The type that a safetensors header calls `name`, case-sensitive.
std::optional<DType> dtypeNamed(llvm::StringRef name);

/// F16, BF16, F32 or F64: the types that the functions below write.
bool isFloating(DType dtype);
/// The floating and the quantised types: the types that the functions below read.
inline bool isReadable(DType dtype) { return isFloating(dtype) || isQuantized(dtype); }

/// One element from its bits, and back rounded to nearest, ties to even. A
/// number beyond the largest finite one becomes an infinity; a NaN stays one.
float bf16ToFloat(uint16_t bits);
float f16ToFloat(uint16_t bits);
uint16_t floatToBf16(float value);
uint16_t floatToF16(float value);

/// Reads `to.size()` elements of readable type `dtype` from element `first` on of the tensor at
/// `stored`, which need not be aligned; in block formats only whole blocks, unless the scales are
/// stored separately. The first form rounds F64 to float. A quantised element is its format's
/// formula evaluated in float32.
void readFloats(DType dtype, const void *stored, int64_t first, llvm::MutableArrayRef<float> to);
void readDoubles(DType dtype, const void *stored, int64_t first, llvm::MutableArrayRef<double> to);

/// The same from the first element on.
inline void readFloats(DType dtype, const void *stored, llvm::MutableArrayRef<float> to) {
  readFloats(dtype, stored, 0, to);
}
inline void readDoubles(DType dtype, const void *stored, llvm::MutableArrayRef<double> to) {
  readDoubles(dtype, stored, 0, to);
}

/// Writes `from` as elements of floating type `dtype` at `to`, which need not be
/// aligned, rounded to nearest even. Doubles go to BF16 and F16 through float.
void writeFloats(DType dtype, llvm::ArrayRef<float> from, uint8_t *to);
void writeDoubles(DType dtype, llvm::ArrayRef<double> from, uint8_t *to);

/// Writes stored[i] + factor · change[i] at `to`, computed in double and rounded as writeDoubles
/// does: the same numbers on every processor.
void addDoubles(DType dtype, const void *stored, double factor, llvm::ArrayRef<double> change,
                uint8_t *to);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_DTYPE_H
