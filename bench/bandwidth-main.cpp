//===- bandwidth-main.cpp - ctxc-bandwidth: reads memory and says how fast --===//
//
//   ctxc-bandwidth [--threads N] [--seconds S]      prints JSON
//
// {"threads", "bytes", "read_gbps": the best, "patterns": [{"streams", "prefetch", "huge_pages",
// "gbps"}]}
//
//===----------------------------------------------------------------------===//
#include "bench/Bandwidth.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace ctxc::bench;

int main(int argc, char **argv) {
  int threads = 1;
  double seconds = 3;
  for (int i = 1; i < argc; ++i) {
    bool more = i + 1 < argc;
    if (more && !std::strcmp(argv[i], "--threads"))
      threads = std::atoi(argv[++i]);
    else if (more && !std::strcmp(argv[i], "--seconds"))
      seconds = std::atof(argv[++i]);
    else
      threads = 0;
  }
  if (threads < 1 || threads > 1024 || !(seconds >= 0)) {
    std::fprintf(stderr, "usage: ctxc-bandwidth [--threads N] [--seconds S]\n");
    return 2;
  }
  ReadBandwidth bandwidth(threads);
  std::vector<ReadResult> results = bandwidth.measure(seconds);
  std::printf("{\"threads\": %d, \"bytes\": %zu, \"read_gbps\": %.2f, \"patterns\": [", threads,
              bandwidth.bytes(), best(results).gigabytesPerSecond);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ReadPattern &pattern = results[i].pattern;
    std::printf("%s\n  {\"streams\": %d, \"prefetch\": %d, \"huge_pages\": %s, \"gbps\": %.2f}",
                i ? "," : "", pattern.streams, pattern.prefetch,
                pattern.hugePages ? "true" : "false", results[i].gigabytesPerSecond);
  }
  std::printf("]}\n");
}
