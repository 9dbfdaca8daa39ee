//===- Tune.h - measures how this machine reads matrices fastest -----------===//
//
// Every way of reading (ctxc/Lowering/Readings.h) is compiled for one matrix of each kind, and
// timed in turn, on matrices that come from memory as a model's do. What is chosen changes no
// number.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_TUNE_H
#define CTXC_RUNTIME_TUNE_H

#include "ctxc/Lowering/Readings.h"
#include <functional>
#include <vector>

namespace ctxc {

struct TuneOptions {
  int threads = 0;   ///< 0: one for each core
  int64_t bytes = 0; ///< of the matrices that are read in turn; 0: twice the last-level cache, from
                     ///< 256 MB to a quarter of the memory that is available
  int rounds = 5;    ///< how often each is timed; the medians count
  /// Told how many of the kernels are compiled and timed.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

/// One way of reading.
struct TimedReading {
  Reading reading;
  /// Of the matrix, with one vector and with two, as in Algorithm 1. 1 GB is 1e9 bytes.
  double gigabytesPerSecond[2];

  /// Of a token that reads it once in either way.
  double mean() const { return 2 / (1 / gigabytesPerSecond[0] + 1 / gigabytesPerSecond[1]); }
};

struct TunedKind {
  llvm::StringRef name; ///< that of Readings::kinds()
  int64_t outputs, inputs;
  std::string element; ///< as in MLIR
  std::vector<TimedReading> tried;
  size_t byDefault = 0, chosen = 0; ///< of those
};

struct Tuning {
  int threads = 1;
  /// How fast memory is read from ordinary and from large pages (Bandwidth.h), in GB/s; 0 where
  /// there are none.
  double ordinaryPages = 0, largePages = 0;
  std::vector<TunedKind> kinds;
  /// Milliseconds of 256 vectors and a matrix of bfloat16, as a prompt's: exact, and with vectors
  /// that are rounded (CompiledOptions::roundedPrompts); 0 where the processor has no instruction
  /// for that.
  double exactPrompt = 0, roundedPrompt = 0;

  Readings readings() const;
};

/// Another reading than the default is chosen where it is faster by 3 percent or more. Errors: a
/// kernel cannot be compiled, there is no memory for the matrices.
llvm::Expected<Tuning> tune(const TuneOptions &options);

} // namespace ctxc

#endif // CTXC_RUNTIME_TUNE_H
