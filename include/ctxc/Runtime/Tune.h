//===- Tune.h - measures how this machine reads matrices fastest -----------===//
//
// Every way of reading (ctxc/Lowering/Readings.h) is compiled for one matrix of each kind, and
// timed in turn, on matrices that are read from memory as a model's are. The choice changes no
// result.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_TUNE_H
#define CTXC_RUNTIME_TUNE_H

#include "ctxc/Lowering/PromptProducts.h"
#include "ctxc/Lowering/Readings.h"
#include <functional>
#include <vector>

namespace ctxc {

struct TuneOptions {
  int threads = 0;   ///< 0: one for each core
  int64_t bytes = 0; ///< of all matrices that are read in turn; 0: twice the last-level cache, but
                     ///< at least 256 MB and at most a quarter of the available memory
  int rounds = 5;    ///< how often each is timed; the medians are used
  /// Called with the number of kernels that were compiled and timed.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

/// One way of reading.
struct TimedReading {
  Reading reading;
  /// At which the matrix is read, with one vector and with two, as in Algorithm 1. 1 GB is 1e9
  /// bytes.
  double gigabytesPerSecond[2];

  /// The speed over a token that reads the matrix once with one vector and once with two.
  double mean() const { return 2 / (1 / gigabytesPerSecond[0] + 1 / gigabytesPerSecond[1]); }
};

struct TunedKind {
  llvm::StringRef name; ///< that of Readings::kinds()
  int64_t outputs, inputs;
  std::string element; ///< as in MLIR
  std::vector<TimedReading> tried;
  size_t byDefault = 0, chosen = 0; ///< indices in `tried`
};

struct Tuning {
  int threads = 1;
  /// The speed of reading memory in ordinary and in large pages (Bandwidth.h), in GB/s; 0 if there
  /// are no such pages.
  double ordinaryPages = 0, largePages = 0;
  std::vector<TunedKind> kinds;
  Readings byDefault = {}; ///< of this processor, also for what is not timed
  /// Milliseconds of a product of a bfloat16 matrix with 256 vectors, as for a prompt, in each way
  /// for which the processor has instructions; none if it can only be computed exactly.
  struct TimedPrompt {
    PromptProducts products;
    double milliseconds;
  };
  std::vector<TimedPrompt> prompts;

  Readings readings() const;
};

/// Chooses another reading than the default only if it is faster by at least 3 percent. Errors: a
/// kernel cannot be compiled; there is no memory for the matrices.
llvm::Expected<Tuning> tune(const TuneOptions &options);

} // namespace ctxc

#endif // CTXC_RUNTIME_TUNE_H
