#include "Ptx.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

using namespace ptx;

namespace {

template <typename To, typename From> To as(From from) {
  To to = 0;
  std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
  return to;
}

float fromHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

bool isFloat(Type type) { return type == Type::F16 || type == Type::F32 || type == Type::F64; }
bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}

/// A whole number of the type's width, extended by its sign.
int64_t whole(uint64_t bits, Type type) {
  switch (sizeOf(type)) {
  case 1:
    return isSigned(type) ? int64_t(int8_t(bits)) : uint8_t(bits);
  case 2:
    return isSigned(type) ? int64_t(int16_t(bits)) : uint16_t(bits);
  case 4:
    return isSigned(type) ? int64_t(int32_t(bits)) : uint32_t(bits);
  }
  return int64_t(bits);
}
uint64_t narrow(uint64_t bits, Type type) {
  unsigned width = 8 * sizeOf(type);
  return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

/// Who touched a word of memory last, and after how many barriers.
struct Touch {
  int32_t writer = -1, reader = -1;
  uint32_t written = 0, read = 0;
};

class Launch {
public:
  Launch(const Kernel &kernel, unsigned blocks, unsigned threads,
         const std::vector<uint64_t> &arguments, const IsValid &isValid)
      : kernel(kernel), blocks(blocks), threads(threads), arguments(arguments), isValid(isValid) {}

  std::string run() {
    // Any order of blocks is right; this one is not the usual.
    for (block = blocks; block-- > 0 && error.empty();)
      runBlock();
    return error;
  }

private:
  struct Thread {
    unsigned id = 0;
    size_t at = 0;
    enum { Running, AtShuffle, AtBarrier, Done } state = Running;
    std::vector<uint64_t> registers;
  };

  void fail(const Thread &thread, const std::string &what) {
    if (error.empty())
      error = kernel.name + ", block " + std::to_string(block) + ", thread " +
              std::to_string(thread.id) + ": " + what + ": " +
              kernel.body[std::min(thread.at, kernel.body.size() - 1)].text;
  }

  void runBlock() {
    all.assign(threads, Thread());
    for (unsigned i = 0; i < threads; ++i) {
      all[i].id = i;
      all[i].registers.assign(kernel.registers, ~uint64_t(0));
    }
    shared.assign(kernel.sharedBytes, char(0xff));
    sharedTouches.assign((kernel.sharedBytes + 3) / 4, Touch());
    epoch = 1;
    for (;;) {
      for (unsigned first = 0; first < threads && error.empty(); first += 32)
        runWarp(first, std::min(first + 32, threads));
      if (!error.empty())
        return;
      size_t done = std::count_if(all.begin(), all.end(),
                                  [](const Thread &t) { return t.state == Thread::Done; });
      if (done == all.size())
        return;
      size_t barrier = all[0].at;
      for (Thread &thread : all) {
        if (thread.state == Thread::Done || thread.at != barrier)
          return fail(thread, "a barrier that not all threads come to");
        thread.state = Thread::Running;
        ++thread.at;
      }
      ++epoch;
    }
  }

  /// Until all its threads are done or at a barrier.
  void runWarp(unsigned first, unsigned last) {
    for (;;) {
      for (unsigned i = first; i < last && error.empty(); ++i)
        while (all[i].state == Thread::Running && error.empty())
          step(all[i]);
      if (!error.empty())
        return;
      auto shuffling = [&](const Thread &t) { return t.state == Thread::AtShuffle; };
      if (std::none_of(&all[first], &all[first] + (last - first), shuffling))
        return;
      for (unsigned i = first; i < last; ++i)
        if (last - first < 32 || !shuffling(all[i]) || all[i].at != all[first].at)
          return fail(all[i], "a shuffle that not all lanes come to");
      shuffle(first);
    }
  }

  void shuffle(unsigned first) {
    const Instruction &i = kernel.body[all[first].at];
    const std::string &mode = i.op[2];
    uint64_t sent[32];
    for (unsigned lane = 0; lane < 32; ++lane)
      sent[lane] = read(all[first + lane], i.operands[0]);
    for (unsigned lane = 0; lane < 32; ++lane) {
      Thread &thread = all[first + lane];
      uint64_t by = read(thread, i.operands[1]);
      unsigned from = mode == "bfly"   ? lane ^ by
                      : mode == "idx"  ? by
                      : mode == "down" ? lane + by
                      : mode == "up"   ? lane - by
                                       : 64;
      if (uint32_t(read(thread, i.operands[3])) != 0xffffffff || from > 95)
        return fail(thread, "a shuffle of another kind");
      write(thread, i, sent[from < 32 ? from : lane]);
      thread.state = Thread::Running;
      ++thread.at;
    }
  }

  uint64_t read(const Thread &thread, const Operand &operand) const {
    switch (operand.kind) {
    case Operand::Register:
      return thread.registers[operand.value];
    case Operand::Number:
      return operand.value;
    case Operand::Thread:
      return thread.id;
    case Operand::Block:
      return block;
    case Operand::Threads:
      return threads;
    case Operand::Blocks:
      return blocks;
    case Operand::Nothing:
      break;
    }
    return 0;
  }
  void write(Thread &thread, const Instruction &i, uint64_t bits) {
    thread.registers[i.results[0].value] = bits;
  }

  void step(Thread &thread) {
    if (thread.at >= kernel.body.size())
      return fail(thread, "the end without a return");
    const Instruction &i = kernel.body[thread.at];
    if (i.isGuarded && bool(thread.registers[i.guard]) == i.isNegated) {
      ++thread.at;
      return;
    }
    switch (i.code) {
    case Instruction::Branch:
      thread.at = i.target;
      return;
    case Instruction::Return:
      thread.state = Thread::Done;
      return;
    case Instruction::Barrier:
      thread.state = Thread::AtBarrier;
      return;
    case Instruction::Shuffle:
      thread.state = Thread::AtShuffle;
      return;
    case Instruction::LoadParameter:
      write(thread, i, arguments[i.operands[0].value]);
      break;
    case Instruction::Load:
    case Instruction::Store:
      access(thread, i);
      break;
    case Instruction::Move:
      write(thread, i, narrow(read(thread, i.operands[0]), i.type));
      break;
    case Instruction::Unpack: {
      uint64_t bits = read(thread, i.operands[0]);
      unsigned width = 8 * sizeOf(i.type) / i.results.size();
      for (size_t k = 0; k < i.results.size(); ++k)
        if (i.results[k].kind == Operand::Register)
          thread.registers[i.results[k].value] = bits >> (k * width) & ((uint64_t(1) << width) - 1);
      break;
    }
    case Instruction::Pack: {
      uint64_t bits = 0;
      unsigned width = 8 * sizeOf(i.type) / i.operands.size();
      for (size_t k = 0; k < i.operands.size(); ++k)
        bits |= (read(thread, i.operands[k]) & ((uint64_t(1) << width) - 1)) << (k * width);
      write(thread, i, bits);
      break;
    }
    case Instruction::Select:
      write(thread, i,
            narrow(read(thread, i.operands[read(thread, i.operands[2]) & 1 ? 0 : 1]), i.type));
      break;
    case Instruction::MulWide:
      write(thread, i,
            narrow(whole(read(thread, i.operands[0]), i.type) *
                       whole(read(thread, i.operands[1]), i.type),
                   sizeOf(i.type) == 2 ? Type::B32 : Type::B64));
      break;
    case Instruction::Compare:
      compare(thread, i);
      break;
    case Instruction::Convert:
      convert(thread, i);
      break;
    case Instruction::Arithmetic:
      if (i.type == Type::F32)
        write(thread, i, as<uint64_t>(ofFloats<float>(thread, i)));
      else if (i.type == Type::F64)
        write(thread, i, as<uint64_t>(ofFloats<double>(thread, i)));
      else
        write(thread, i, narrow(ofWholes(thread, i), i.type));
      break;
    }
    ++thread.at;
  }

  void access(Thread &thread, const Instruction &i) {
    unsigned size = sizeOf(i.type), bytes = size * i.results.size();
    uint64_t address = read(thread, i.operands[0]) + i.offset;
    bool stores = i.code == Instruction::Store;
    if (i.isShared ? address + bytes > shared.size() : !isValid(address, bytes))
      return fail(thread, stores ? "a store outside" : "a load from outside");
    if (address % bytes)
      return fail(thread, "an address that is not aligned");
    char *memory = i.isShared ? shared.data() + address : reinterpret_cast<char *>(address);
    for (size_t k = 0; k < i.results.size(); ++k) {
      uint64_t bits = stores ? read(thread, i.results[k]) : 0;
      char *at = memory + k * size;
      touch(thread, i, address + k * size, stores, stores && std::memcmp(at, &bits, size) == 0);
      if (stores) {
        std::memcpy(at, &bits, size);
      } else {
        std::memcpy(&bits, at, size);
        thread.registers[i.results[k].value] = bits;
      }
    }
  }

  /// Finds races: what one thread wrote, and another reads or writes before a barrier of both, or
  /// in another block. A store of what is there already does no harm.
  void touch(Thread &thread, const Instruction &i, uint64_t address, bool stores, bool isSame) {
    Touch &word = i.isShared ? sharedTouches[address / 4] : touches[address / 2];
    int32_t who = i.isShared ? thread.id : block * threads + thread.id;
    auto isOther = [&](int32_t other, uint32_t when) {
      return other >= 0 && other != who &&
             (when == epoch || (!i.isShared && other / int32_t(threads) != int32_t(block)));
    };
    if (isOther(word.writer, word.written) && !isSame)
      return fail(thread, "a race with thread " + std::to_string(word.writer) + "'s store");
    if (stores && !isSame && isOther(word.reader, word.read))
      return fail(thread, "a race with thread " + std::to_string(word.reader) + "'s load");
    if (stores && !isSame)
      word.writer = who, word.written = epoch;
    else if (!stores)
      word.reader = who, word.read = epoch;
  }

  template <typename T> T ofFloats(Thread &thread, const Instruction &i) {
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

  uint64_t ofWholes(Thread &thread, const Instruction &i) {
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
    case Op::Bfe:
      if (!isSign && x[2] < 64)
        return u[0] >> x[1] & ((uint64_t(1) << x[2]) - 1);
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

  void compare(Thread &thread, const Instruction &i) {
    uint64_t a = read(thread, i.operands[0]), b = read(thread, i.operands[1]);
    std::string how = i.op[1]; // no allocation: a few letters
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
      static const char *unsignedNames[][2] = {
          {"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
      for (auto &name : unsignedNames)
        if (how == name[0])
          how = name[1];
    }
    if (how == "nan" || how == "num")
      return write(thread, i, (how == "nan") == isUnordered);
    // A u at the end: or not comparable.
    if (how.size() == 3 && isUnordered)
      return write(thread, i, 1);
    how = how.substr(0, 2);
    bool holds = how == "eq"   ? isEqual
                 : how == "ne" ? !isEqual && !isUnordered
                 : how == "lt" ? isLess
                 : how == "le" ? isLess || isEqual
                 : how == "gt" ? !isLess && !isEqual && !isUnordered
                               : !isLess && !isUnordered;
    write(thread, i, holds);
  }

  void convert(Thread &thread, const Instruction &i) {
    uint64_t bits = read(thread, i.operands[0]);
    if (!isFloat(i.from) && !isFloat(i.type))
      return write(thread, i, narrow(whole(bits, i.from), i.type));
    if (!isFloat(i.from)) {
      int64_t from = whole(bits, i.from);
      double value = isSigned(i.from) ? double(from) : double(uint64_t(from));
      return write(thread, i,
                   i.type == Type::F32 ? as<uint64_t>(float(value)) : as<uint64_t>(value));
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
    // Numbers that do not fit become the nearest that do, and what is none zero.
    double least = isSigned(i.type) ? -std::ldexp(1, 8 * sizeOf(i.type) - 1) : 0;
    double most = std::ldexp(1, 8 * sizeOf(i.type) - isSigned(i.type)) - 1;
    x = std::isnan(x) ? 0 : std::min(std::max(x, least), most);
    write(thread, i, narrow(uint64_t(int64_t(x)), i.type));
  }

  const Kernel &kernel;
  const unsigned blocks, threads;
  const std::vector<uint64_t> &arguments;
  const IsValid &isValid;
  unsigned block = 0;
  std::vector<Thread> all;
  std::vector<char> shared;
  std::vector<Touch> sharedTouches;
  std::unordered_map<uint64_t, Touch> touches; ///< of the device's memory, by pieces of 2 bytes
  uint32_t epoch = 1;
  std::string error;
};

} // namespace

std::string ptx::run(const Kernel &kernel, unsigned blocks, unsigned threads,
                     const std::vector<uint64_t> &arguments, const IsValid &isValid) {
  return Launch(kernel, blocks, threads, arguments, isValid).run();
}
