// PTX that tests execute: as much of the language as LLVM writes for the kernels, read and run by
// threads in lockstep at shuffles and barriers. What a real device leaves to chance is an error
// here: an access outside of what was allocated, a word that two threads of a block write or read
// and write without a barrier between, a shuffle that lanes are missing from.
#ifndef CTXC_TEST_FAKE_GPU_PTX_H
#define CTXC_TEST_FAKE_GPU_PTX_H

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
unsigned sizeOf(Type type);

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

struct Operand {
  enum Kind { Register, Number, Thread, Block, Threads, Blocks, Nothing } kind = Number;
  uint64_t value = 0; ///< the register's index, or the number's bits
};

struct Instruction {
  std::string text;                        ///< for messages
  std::vector<std::string> op;             ///< split at dots: ld, global, v4, b32
  Type type = Type::B32, from = Type::B32; ///< the last, and the one before where there are two
  std::vector<Operand> results, operands;
  Op arithmetic = Op::Unknown;
  Rounding rounding = Rounding::None; ///< to a whole number
  bool keepsNaN = false, isShared = false, isGuarded = false, isNegated = false;
  uint64_t guard = 0;
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
};

struct Kernel {
  std::string name;
  std::vector<std::string> parameters;
  unsigned mostThreads = 1024;
  size_t registers = 0, sharedBytes = 0;
  std::vector<Instruction> body;
};

struct Module {
  std::string target; ///< sm_90
  std::map<std::string, Kernel> kernels;
};

/// False, and why in `error`, where the text is none that is known here.
bool parse(const std::string &text, Module &module, std::string &error);

/// Whether a launch may touch these bytes.
using IsValid = std::function<bool(uint64_t address, uint64_t bytes)>;

/// Runs a launch; the error, empty where there is none.
std::string run(const Kernel &kernel, unsigned blocks, unsigned threads,
                const std::vector<uint64_t> &arguments, const IsValid &isValid);

} // namespace ptx

#endif // CTXC_TEST_FAKE_GPU_PTX_H
