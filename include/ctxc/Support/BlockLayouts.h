//===- BlockLayouts.h - where a block has its numbers and its scales -------===//
//
// All readers of the formats of BlockFormats.def take places from here: the decoders in scalar
// code, those in the vectors of a processor, and those in the words of a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SUPPORT_BLOCKLAYOUTS_H
#define CTXC_SUPPORT_BLOCKLAYOUTS_H

#include <cstdint>

namespace ctxc::blocks {

/// What a block's integers are multiplied by.
enum Scale {
  Half,       ///< d, a float16
  SixBits,    ///< d s, and e t is subtracted: two float16, and for each 32 numbers six bits of each
  Bytes,      ///< d s: a float16, and for each 16 numbers a signed byte
  PowerOfTwo, ///< 2^(e - 128), where e is a byte
  Float,      ///< a float32
  Apart       ///< what another tensor has
};

enum Numbers {
  Unsigned,
  Signed, ///< bytes
  E2M1,   ///< a sign, two bits of exponent, one of fraction: twice the number is an integer
  E4M3    ///< a sign, four bits of exponent, three of fraction
};

/// Some bits of each number. `together` numbers are in each byte, `apart` from each other, and the
/// first of them in the lowest bits.
struct BitPlane {
  int64_t bits = 0; ///< of a number: 1, 2, 4 or 8; 0 where the block has no such plane
  int64_t at = 0;   ///< the plane's first byte
  int64_t apart = 1;

  constexpr int64_t together() const { return 8 / bits; }
  constexpr int64_t byteOf(int64_t number) const {
    return at + number / (apart * together()) * apart + number % apart;
  }
  constexpr int64_t bitOf(int64_t number) const { return number / apart % together() * bits; }
};

/// A number is d (q - zero), or d q + m where there is a minimum m.
struct Fields {
  Scale scale;
  int64_t scaleAt, minimumAt, groupsAt; ///< d; m or e, 0 where there is none; s and t of groups
  BitPlane low, top;                    ///< of q
  int64_t zero;
  Numbers numbers;

  /// How many numbers have the same scale.
  constexpr int64_t group() const { return scale == Bytes ? 16 : 32; }
  constexpr int64_t bits() const { return low.bits + top.bits; }
};

// clang-format off
//                                scale            low         top          zero
inline constexpr Fields
    fieldsQ4_0         = {Half,       0, 0, 0,   {4, 2, 16},  {},           8,  Unsigned},
    fieldsQ4_1         = {Half,       0, 2, 0,   {4, 4, 16},  {},           0,  Unsigned},
    fieldsQ5_0         = {Half,       0, 0, 0,   {4, 6, 16},  {1, 2, 1},    16, Unsigned},
    fieldsQ5_1         = {Half,       0, 2, 0,   {4, 8, 16},  {1, 4, 1},    0,  Unsigned},
    fieldsQ8_0         = {Half,       0, 0, 0,   {8, 2, 32},  {},           0,  Signed},
    fieldsQ4_K         = {SixBits,    0, 2, 4,   {4, 16, 32}, {},           0,  Unsigned},
    fieldsQ5_K         = {SixBits,    0, 2, 4,   {4, 48, 32}, {1, 16, 32},  0,  Unsigned},
    fieldsQ6_K         = {Bytes,    208, 0, 192, {4, 0, 64},  {2, 128, 32}, 32, Unsigned},
    fieldsBlockMXFP4   = {PowerOfTwo, 0, 0, 0,   {4, 1, 16},  {},           0,  E2M1},
    fieldsScaledF8E4M3 = {Apart,      0, 0, 0,   {8, 0, 32},  {},           0,  E4M3},
    fieldsMXFP4        = {Apart,      0, 0, 0,   {4, 0, 1},   {},           0,  E2M1},
    // In a GPU's memory.
    fieldsDeviceF8E4M3 = {Float,      0, 0, 0,   {8, 4, 32},  {},           0,  E4M3};
// clang-format on

struct Layout : Fields {
  int64_t elements, bytes;
};

/// In the order of BlockFormats.def.
inline constexpr Layout layouts[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) {fields##NAME, ELEMENTS, BYTES},
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  {fields##NAME, ELEMENTS, BYTES},
#include "ctxc/Support/BlockFormats.def"
};

} // namespace ctxc::blocks

#endif // CTXC_SUPPORT_BLOCKLAYOUTS_H
