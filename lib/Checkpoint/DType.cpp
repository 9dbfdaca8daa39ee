#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Numerics/BlockFormats.h"
#include "ctxc/Numerics/EachCpu.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

using namespace llvm;
using namespace ctxc;

namespace {

struct Description {
  const char *name;
  unsigned bits;
};

/// Indexed by DType, without the quantised ones.
constexpr Description descriptions[] = {
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
};
static_assert(std::size(descriptions) == static_cast<size_t>(DType::U64) + 1);

struct Format {
  const char *name;
  BlockSize size;
  bool scalesApart;
};

/// From the first quantised type on.
constexpr Format formats[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) {#NAME, {ELEMENTS, BYTES}, false},
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  {TEXT, {ELEMENTS, BYTES}, true},
#include "ctxc/Support/BlockFormats.def"
};

size_t formatOf(DType dtype) { return static_cast<size_t>(dtype) - std::size(descriptions); }

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename T> T load(const uint8_t *from, size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> void store(uint8_t *to, size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

template <typename T> void read(DType dtype, const uint8_t *from, MutableArrayRef<T> to) {
  switch (dtype) {
  case DType::BF16:
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = bf16ToFloat(load<uint16_t>(from, i));
    return;
  case DType::F16:
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = f16ToFloat(load<uint16_t>(from, i));
    return;
  case DType::F32:
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = load<float>(from, i);
    return;
  case DType::F64:
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<T>(load<double>(from, i));
    return;
  default:
    llvm_unreachable("elements of a type that is not floating");
  }
}

template <typename T> void write(DType dtype, ArrayRef<T> from, uint8_t *to) {
  switch (dtype) {
  case DType::BF16:
    for (size_t i = 0; i < from.size(); ++i)
      store(to, i, floatToBf16(static_cast<float>(from[i])));
    return;
  case DType::F16:
    for (size_t i = 0; i < from.size(); ++i)
      store(to, i, floatToF16(static_cast<float>(from[i])));
    return;
  case DType::F32:
    for (size_t i = 0; i < from.size(); ++i)
      store(to, i, static_cast<float>(from[i]));
    return;
  case DType::F64:
    for (size_t i = 0; i < from.size(); ++i)
      store(to, i, static_cast<double>(from[i]));
    return;
  default:
    llvm_unreachable("elements of a type that is not floating");
  }
}

} // namespace

bool ctxc::hasScalesApart(DType dtype) {
  return isQuantized(dtype) && formats[formatOf(dtype)].scalesApart;
}

unsigned ctxc::bitsOf(DType dtype) {
  assert(!isQuantized(dtype));
  return descriptions[static_cast<size_t>(dtype)].bits;
}

BlockSize ctxc::blockSizeOf(DType dtype) {
  if (isQuantized(dtype))
    return formats[formatOf(dtype)].size;
  assert(bitsOf(dtype) % 8 == 0);
  return {1, bitsOf(dtype) / 8};
}

const void *ctxc::sliceOf(DType dtype, const void *stored, int64_t index, uint64_t elements) {
  if (hasScalesApart(dtype))
    return static_cast<const ctxc_scaled_matrix *>(stored) + index;
  return static_cast<const char *>(stored) + bytesOf(dtype, index * elements);
}

StringRef ctxc::nameOf(DType dtype) {
  return isQuantized(dtype) ? formats[formatOf(dtype)].name
                            : descriptions[static_cast<size_t>(dtype)].name;
}

std::optional<DType> ctxc::dtypeNamed(StringRef name) {
  for (size_t i = 0; i < std::size(descriptions); ++i)
    if (name == descriptions[i].name)
      return static_cast<DType>(i);
  return std::nullopt;
}

bool ctxc::isFloating(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}

float ctxc::bf16ToFloat(uint16_t bits) { return bitCast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t ctxc::floatToBf16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  // A NaN whose payload sits in the low half only must not round to infinity.
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float ctxc::f16ToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return bitCast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0)
    return bitCast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Zero and subnormals: fraction · 2⁻²⁴, exact in float.
  float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint16_t ctxc::floatToF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) // NaN
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000) // 65520, halfway above the largest: rounds to ∞
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Below 2⁻¹⁴ the result counts units of 2⁻²⁴. Adding 0.5, whose last place
    // is 2⁻²⁴, makes the hardware round to them, and leaves the count in the
    // low bits; a carry into the smallest normal number is right as well.
    uint32_t rounded = bitCast<uint32_t>(bitCast<float>(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (rounded - 0x3f000000));
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude >> 13) - (112u << 10)));
}

/// The address of element `first`.
static const uint8_t *elementAt(DType dtype, const void *stored, int64_t first) {
  return static_cast<const uint8_t *>(stored) + ctxc::bytesOf(dtype, first);
}

void ctxc::readFloats(DType dtype, const void *stored, int64_t first, MutableArrayRef<float> to) {
  if (isQuantized(dtype))
    return ctxc_decode(formatOf(dtype), stored, first, to.size(), to.data());
  read(dtype, elementAt(dtype, stored, first), to);
}

void ctxc::readDoubles(DType dtype, const void *stored, int64_t first, MutableArrayRef<double> to) {
  if (!isQuantized(dtype))
    return read(dtype, elementAt(dtype, stored, first), to);
  SmallVector<float, 0> floats(to.size());
  readFloats(dtype, stored, first, floats);
  llvm::copy(floats, to.begin());
}

void ctxc::writeFloats(DType dtype, ArrayRef<float> from, uint8_t *to) { write(dtype, from, to); }

/// store(to, i, floatToBf16(value)) without branches, so that it vectorises.
LLVM_ATTRIBUTE_ALWAYS_INLINE static void storeBf16(uint8_t *to, size_t i, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, nan = (bits >> 16) | 0x40;
  uint16_t stored = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  std::memcpy(to + i * sizeof(stored), &stored, sizeof(stored));
}

CTXC_EACH_CPU static void writeBf16(const double *from, size_t count, uint8_t *to) {
  for (size_t i = 0; i < count; ++i)
    storeBf16(to, i, static_cast<float>(from[i]));
}

// A product and a sum, rounded separately: the numbers do not depend on whether a processor has a
// fused multiply-add.
CTXC_EACH_CPU static void addToBf16(const uint8_t *from, double factor, const double *change,
                                    size_t count, uint8_t *to) {
#pragma clang fp contract(off)
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * sizeof(half), sizeof(half));
    uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    storeBf16(to, i, static_cast<float>(value + factor * change[i]));
  }
}

CTXC_EACH_CPU static void addToF32(const uint8_t *from, double factor, const double *change,
                                   size_t count, uint8_t *to) {
#pragma clang fp contract(off)
  for (size_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof(value), sizeof(value));
    value = static_cast<float>(value + factor * change[i]);
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
  }
}

void ctxc::writeDoubles(DType dtype, ArrayRef<double> from, uint8_t *to) {
  if (dtype == DType::BF16)
    return writeBf16(from.data(), from.size(), to);
  write(dtype, from, to);
}

void ctxc::addDoubles(DType dtype, const void *stored, double factor, ArrayRef<double> change,
                      uint8_t *to) {
  const auto *from = static_cast<const uint8_t *>(stored);
  if (dtype == DType::BF16)
    return addToBf16(from, factor, change.data(), change.size(), to);
  if (dtype == DType::F32)
    return addToF32(from, factor, change.data(), change.size(), to);
  SmallVector<double, 0> sums(change.size());
  readDoubles(dtype, stored, sums);
  for (auto [sum, number] : zip(sums, change))
    sum += factor * number;
  writeDoubles(dtype, sums, to);
}
