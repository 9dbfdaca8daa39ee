// PTX that tests execute: as much of the language as LLVM writes for the kernels, read and run by
// threads in lockstep at shuffles and barriers. What a real device leaves to chance is an error
// here: an access outside of what was allocated, a word that two threads of a block write or read
// and write without a barrier between, a shuffle that lanes are missing from.
#ifndef CTXC_TEST_FAKE_GPU_PTX_H
#define CTXC_TEST_FAKE_GPU_PTX_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ptx {

enum class Type {
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F32,
  F64,
  BF16x2
};

/// Bytes in memory.
inline unsigned sizeOf(Type type) {
  constexpr unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 4};
  return sizes[unsigned(type)];
}
inline bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }

/// What Arithmetic does.
enum class Op {
  Add,
  Sub,
  MulLo,
  MulHi,
  Mad,
  Fma,
  Div,
  Rem,
  Rcp,
  Sqrt,
  Neg,
  Abs,
  Min,
  Max,
  And,
  Or,
  Xor,
  Not,
  Shl,
  Shr,
  Bfe,
  Unknown
};
enum class Rounding { None, Down, Up, ToZero, Nearest };
enum class Relation { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, Number, NaN };

/// The index of a register. Numbers and what a thread knows of itself are in registers too.
using Operand = uint32_t;

/// The operands of one instruction, beside it in memory.
class Operands {
public:
  static constexpr size_t most = 10;
  void push_back(Operand each) { all.at(count++) = each; }
  size_t size() const { return count; }
  Operand operator[](size_t i) const { return all[i]; }
  const Operand *begin() const { return all.data(); }
  const Operand *end() const { return all.data() + count; }

private:
  std::array<Operand, most> all = {};
  uint32_t count = 0;
};

struct Instruction {
  Type type = Type::B32, from = Type::B32; ///< the last, and the one before where there are two
  Operands results, operands;
  Op arithmetic = Op::Unknown;
  Rounding rounding = Rounding::None; ///< to a whole number
  Relation relation = Relation::Equal;
  bool orUnordered = false; ///< a comparison holds where there is a NaN
  bool keepsNaN = false, isShared = false, isGuarded = false, isNegated = false;
  Operand guard = 0;
  int64_t offset = 0;       ///< of an address
  int64_t sourceOffset = 0; ///< of a copy's second address
  size_t target = 0;        ///< of a branch
  enum Code {
    Load,
    Store,
    LoadParameter,
    Move,
    Unpack, ///< a register's parts into several
    Pack,
    Arithmetic,
    MulWide,
    Compare,
    Select,
    Convert,
    Shuffle,
    LoadMatrices,
    MultiplyMatrices,
    BeginCopy, ///< to shared memory, of 16 bytes: where to, where from, how many bytes; how many
               ///< are there
    CommitCopies,
    WaitForCopies,
    Barrier,
    Branch,
    Return
  } code = Move;
  std::vector<std::string> op; ///< split at dots: ld, global, v4, b32
  std::string text;            ///< for messages
};

struct Kernel {
  std::string name;
  std::vector<std::string> parameters;
  unsigned mostThreads = 1024;
  size_t sharedBytes = 0;
  std::vector<uint64_t> registers; ///< what a thread's begin as
  enum Special { Thread, Block, Threads, Blocks };
  std::map<Operand, Special> specials; ///< registers that have something else in each thread
  std::vector<Instruction> body;
};

struct Module {
  std::string target; ///< sm_90
  std::map<std::string, Kernel> kernels;
};

/// False, and why in `error`, where the text is none that is known here.
bool parse(const std::string &text, Module &module, std::string &error);

/// Memory that a launch may touch: from `begin` on, before `end`.
struct Range {
  uint64_t begin = 0, end = 0;
  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};
/// The memory that an address is in; an empty range where there is none.
using RangeOf = std::function<Range(uint64_t address)>;

/// Runs a launch; the error, empty where there is none.
std::string run(const Kernel &kernel, unsigned blocks, unsigned threads,
                const std::vector<uint64_t> &arguments, const RangeOf &rangeOf);

} // namespace ptx

#endif // CTXC_TEST_FAKE_GPU_PTX_H
