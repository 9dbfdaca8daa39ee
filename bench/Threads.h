// The only option of these programs that Google Benchmark does not parse.
#ifndef CTXC_BENCH_THREADS_H
#define CTXC_BENCH_THREADS_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace ctxc::bench {

/// Removes --threads=N from the arguments. Returns N, 1 where the option is not given, or none
/// where N is not a number from 1 to 1024.
inline std::optional<int> takeThreads(int &argc, char **argv) {
  int threads = 1, kept = 1;
  bool good = true;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument.consume_front("--threads="))
      good &= !argument.getAsInteger(10, threads);
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  if (!good || threads < 1 || threads > 1024)
    return std::nullopt;
  return threads;
}

} // namespace ctxc::bench

#endif // CTXC_BENCH_THREADS_H
