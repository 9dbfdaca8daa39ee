// The arithmetic of instructions, thread by thread.
#include "PtxLaunch.h"
#include <cmath>

using namespace ptx;

namespace {

float fromHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

bool isFloat(Type type) { return type == Type::F16 || type == Type::F32 || type == Type::F64; }

/// Rounds to the nearest bfloat16, ties to even.
uint16_t toBfloat16(float x) {
  uint32_t bits = as<uint32_t>(x);
  return std::isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

bool compared(Relation relation, bool isLess, bool isEqual, bool isUnordered) {
  switch (relation) {
  case Relation::Equal:
    return isEqual;
  case Relation::NotEqual:
    return !isEqual;
  case Relation::Less:
    return isLess;
  case Relation::LessEqual:
    return isLess || isEqual;
  case Relation::Greater:
    return !isLess && !isEqual;
  case Relation::GreaterEqual:
    return !isLess;
  case Relation::Number:
    return !isUnordered;
  case Relation::NaN:
    return isUnordered;
  }
  return false;
}

} // namespace

uint64_t Launch::arithmetic(Thread &thread, const Instruction &i) {
  if (i.type == Type::F32)
    return as<uint64_t>(ofFloats<float>(thread, i));
  if (i.type == Type::F64)
    return as<uint64_t>(ofFloats<double>(thread, i));
  return narrow(ofWholes(thread, i), i.type);
}

template <typename T> T Launch::ofFloats(Thread &thread, const Instruction &i) {
  T x[3] = {};
  for (size_t k = 0; k < i.operands.size(); ++k)
    x[k] = as<T>(read(thread, i.operands[k]));
  switch (i.arithmetic) {
  case Op::Add:
    return x[0] + x[1];
  case Op::Sub:
    return x[0] - x[1];
  case Op::MulLo:
    return x[0] * x[1];
  case Op::Mad:
  case Op::Fma:
    return std::fma(x[0], x[1], x[2]);
  case Op::Div:
    return x[0] / x[1];
  case Op::Rcp:
    return 1 / x[0];
  case Op::Sqrt:
    return std::sqrt(x[0]);
  case Op::Neg:
    return -x[0];
  case Op::Abs:
    return std::fabs(x[0]);
  case Op::Min:
  case Op::Max:
    if (i.keepsNaN && (std::isnan(x[0]) || std::isnan(x[1])))
      return NAN;
    return i.arithmetic == Op::Max ? std::fmax(x[0], x[1]) : std::fmin(x[0], x[1]);
  default:
    fail(thread, "unknown arithmetic");
    return 0;
  }
}

uint64_t Launch::ofWholes(Thread &thread, const Instruction &i) {
  int64_t x[3] = {};
  for (size_t k = 0; k < i.operands.size(); ++k)
    x[k] = whole(read(thread, i.operands[k]), i.type);
  const int64_t width = 8 * sizeOf(i.type);
  const uint64_t u[2] = {uint64_t(x[0]), uint64_t(x[1])};
  const bool isSign = isSigned(i.type), isLess = isSign ? x[0] < x[1] : u[0] < u[1];
  switch (i.arithmetic) {
  case Op::Add:
    return u[0] + u[1];
  case Op::Sub:
    return u[0] - u[1];
  case Op::MulLo:
    return u[0] * u[1];
  case Op::MulHi:
    return isSign ? uint64_t((x[0] * x[1]) >> width) : (u[0] * u[1]) >> width;
  case Op::Mad:
    return u[0] * u[1] + uint64_t(x[2]);
  case Op::And:
    return u[0] & u[1];
  case Op::Or:
    return u[0] | u[1];
  case Op::Xor:
    return u[0] ^ u[1];
  case Op::Not:
    return i.type == Type::Pred ? !u[0] : ~u[0];
  case Op::Neg:
    return -u[0];
  case Op::Shl:
    return x[1] >= width ? 0 : u[0] << x[1];
  case Op::Shr:
    if (isSign)
      return x[0] >> std::min<int64_t>(x[1], width - 1);
    return x[1] >= width ? 0 : u[0] >> x[1];
  case Op::FunnelLeft:
  case Op::FunnelRight:
  case Op::BytesFrom:
  case Op::Bytes: {
    const uint64_t both = u[1] << 32 | (u[0] & 0xffffffff);
    if (i.arithmetic == Op::BytesFrom)
      return both >> 8 * (x[2] & 3);
    if (i.arithmetic == Op::Bytes) {
      uint64_t bytes = 0;
      for (int at = 0; at < 4; ++at) { // a fourth bit of the selector takes the byte's sign
        const int chosen = x[2] >> 4 * at;
        const uint64_t byte = both >> 8 * (chosen & 7) & 255;
        bytes |= (chosen & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * at;
      }
      return bytes;
    }
    return i.arithmetic == Op::FunnelRight ? both >> (x[2] & 31) : both << (x[2] & 31) >> 32;
  }
  case Op::Bfe:
    if (!isSign && x[2] < 64)
      return u[0] >> x[1] & ((uint64_t(1) << x[2]) - 1);
    if (isSign && x[1] >= 0 && x[2] > 0 && x[1] + x[2] <= width) // the field's first bit is a sign
      return uint64_t(int64_t(u[0] << (64 - x[1] - x[2])) >> (64 - x[2]));
    break;
  case Op::Min:
    return isLess ? u[0] : u[1];
  case Op::Max:
    return isLess ? u[1] : u[0];
  case Op::Div:
    if (x[1])
      return isSign ? uint64_t(x[0] / x[1]) : u[0] / u[1];
    break;
  case Op::Rem:
    if (x[1])
      return isSign ? uint64_t(x[0] % x[1]) : u[0] % u[1];
    break;
  default:
    break;
  }
  fail(thread, "unknown arithmetic");
  return 0;
}

void Launch::compare(Thread &thread, const Instruction &i) {
  uint64_t a = read(thread, i.operands[0]), b = read(thread, i.operands[1]);
  bool isLess, isEqual, isUnordered = false;
  if (isFloat(i.type)) {
    double x = i.type == Type::F32 ? as<float>(a) : as<double>(a);
    double y = i.type == Type::F32 ? as<float>(b) : as<double>(b);
    isLess = x < y;
    isEqual = x == y;
    isUnordered = std::isnan(x) || std::isnan(y);
  } else {
    int64_t x = whole(a, i.type), y = whole(b, i.type);
    isLess = isSigned(i.type) ? x < y : uint64_t(x) < uint64_t(y);
    isEqual = x == y;
  }
  bool holds = i.orUnordered;
  if (!isUnordered || i.relation == Relation::NaN || i.relation == Relation::Number)
    holds = compared(i.relation, isLess, isEqual, isUnordered);
  write(thread, i, holds);
}

void Launch::convert(Thread &thread, const Instruction &i) {
  uint64_t bits = read(thread, i.operands[0]);
  if (i.type == Type::BF16x2)
    return write(thread, i,
                 uint64_t(toBfloat16(as<float>(bits))) << 16 |
                     toBfloat16(as<float>(read(thread, i.operands[1]))));
  if (!isFloat(i.from) && !isFloat(i.type))
    return write(thread, i, narrow(whole(bits, i.from), i.type));
  if (!isFloat(i.from)) {
    int64_t from = whole(bits, i.from);
    double value = isSigned(i.from) ? double(from) : double(uint64_t(from));
    return write(thread, i, i.type == Type::F32 ? as<uint64_t>(float(value)) : as<uint64_t>(value));
  }
  double x = i.from == Type::F16   ? fromHalf(bits)
             : i.from == Type::F32 ? as<float>(bits)
                                   : as<double>(bits);
  switch (i.rounding) {
  case Rounding::Down:
    x = std::floor(x);
    break;
  case Rounding::Up:
    x = std::ceil(x);
    break;
  case Rounding::ToZero:
    x = std::trunc(x);
    break;
  case Rounding::Nearest:
    x = std::nearbyint(x);
    break;
  case Rounding::None:
    break;
  }
  if (i.type == Type::F32)
    return write(thread, i, as<uint64_t>(float(x)));
  if (i.type == Type::F64)
    return write(thread, i, as<uint64_t>(x));
  if (i.type == Type::F16)
    return fail(thread, "unknown conversion");
  // Numbers out of range become the nearest that is in range; NaN becomes zero.
  double least = isSigned(i.type) ? -std::ldexp(1, 8 * sizeOf(i.type) - 1) : 0;
  double most = std::ldexp(1, 8 * sizeOf(i.type) - isSigned(i.type)) - 1;
  x = std::isnan(x) ? 0 : std::min(std::max(x, least), most);
  write(thread, i, narrow(uint64_t(int64_t(x)), i.type));
}
