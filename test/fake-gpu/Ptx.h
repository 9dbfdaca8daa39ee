// Executes PTX for tests: the part of the language that LLVM writes for ctxc's kernels, run by
// threads that proceed in lockstep at shuffles and barriers. Where the behaviour of a real device
// would be undefined, it reports an error: an access outside of allocated memory, a word that one
// thread of a block writes and another accesses without a barrier between them, a shuffle that some
// lanes do not reach.
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

/// The number of bytes in memory.
inline unsigned sizeOf(Type type) {
  constexpr unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 4};
  return sizes[unsigned(type)];
}
inline bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }

/// The operation of an arithmetic instruction.
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
  FunnelLeft,
  FunnelRight,
  BytesFrom, ///< prmt.f4e: four of eight bytes, from one on
  Bytes,     ///< prmt: each by a half byte of the selector
  Unknown
};
enum class Rounding { None, Down, Up, ToZero, Nearest };
enum class Relation { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, Number, NaN };

/// The index of a register. Constants and special registers of a thread are kept in registers too.
using Operand = uint32_t;

/// The operands of one instruction, stored inside of it.
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
  Type type = Type::B32, from = Type::B32; ///< the name's last type, and the one before it
  Operands results, operands;
  Op arithmetic = Op::Unknown;
  Rounding rounding = Rounding::None; ///< to an integer
  Relation relation = Relation::Equal;
  bool orUnordered = false; ///< the comparison holds if an operand is NaN
  bool keepsNaN = false, isShared = false, isGuarded = false, isNegated = false;
  Operand guard = 0;
  int64_t offset = 0;       ///< of the address
  int64_t sourceOffset = 0; ///< of a copy's source address
  size_t target = 0;        ///< of the branch
  enum Code {
    Load,
    Store,
    LoadParameter,
    Move,
    Unpack, ///< the parts of a register into several
    Pack,
    Arithmetic,
    MulWide,
    Compare,
    Select,
    Convert,
    Shuffle,
    LoadMatrices,
    MultiplyMatrices,
    BeginCopy, ///< 16 bytes to shared memory: to, from, size, and how many bytes exist; the others
               ///< become zero
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
  std::vector<uint64_t> registers; ///< initial values in each thread
  enum Special { Thread, Block, Threads, Blocks };
  std::map<Operand, Special> specials; ///< registers with a different value in each thread
  std::vector<Instruction> body;
};

struct Module {
  std::string target; ///< sm_90
  std::map<std::string, Kernel> kernels;
};

/// Returns false, and the reason in `error`, where the text is not in the supported part of PTX.
bool parse(const std::string &text, Module &module, std::string &error);

/// Memory that a launch may access, from `begin` up to `end`.
struct Range {
  uint64_t begin = 0, end = 0;
  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};
/// The allocated range that contains an address; an empty range where there is none.
using RangeOf = std::function<Range(uint64_t address)>;

/// Runs a launch. Returns the error, or an empty string.
std::string run(const Kernel &kernel, unsigned blocks, unsigned threads,
                const std::vector<uint64_t> &arguments, const RangeOf &rangeOf);

} // namespace ptx

#endif // CTXC_TEST_FAKE_GPU_PTX_H
