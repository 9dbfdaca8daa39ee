//===- Mutate.h - changes that a format's outer checks let through -----------===//
//
// Bytes changed at random mostly end at the first check: a length that no longer fits, JSON that is
// none. These mutators change what stands inside, and then make lengths and offsets fit again.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TEST_FUZZ_MUTATE_H
#define CTXC_TEST_FUZZ_MUTATE_H

#include "llvm/ADT/StringRef.h"
#include <random>
#include <string>

/// libFuzzer's own: changes the bytes at `data`; returns how many there are then.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace ctxc::fuzz {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  /// From 0 to below `count`, which is not 0.
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine); }
  bool oneIn(size_t count) { return below(count) == 0; }

private:
  std::mt19937_64 engine;
};

/// `bytes` changed as suits the format that the reader reads; empty where libFuzzer's own changes
/// suit it best, or these bytes.
std::string mutate(llvm::StringRef reader, llvm::StringRef bytes, size_t most, Random &random);
/// A mixture of two inputs.
std::string cross(llvm::StringRef reader, llvm::StringRef a, llvm::StringRef b, Random &random);

/// libFuzzer's own change of some bytes.
std::string plainly(llvm::StringRef bytes, size_t most);

std::string mutateJson(llvm::StringRef text, Random &random);
/// Each line is JSON.
std::string mutateJsonLines(llvm::StringRef text, Random &random);
std::string mutateSafetensors(llvm::StringRef bytes, size_t most, Random &random);
std::string mutateNpy(llvm::StringRef bytes, size_t most, Random &random);
std::string mutateGguf(llvm::StringRef bytes, size_t most, Random &random);
std::string mutateModelText(llvm::StringRef text, Random &random);
std::string mutateTemplate(llvm::StringRef text, Random &random);
/// The lines of `a` with some of `b`.
std::string crossLines(llvm::StringRef a, llvm::StringRef b, Random &random);

/// A number at which something may break.
int64_t boundary(Random &random);

} // namespace ctxc::fuzz

#endif // CTXC_TEST_FUZZ_MUTATE_H
