// Drivers of GPUs for tests: a libcuda.so.1 and a libamdhip64.so.7 with devices of any kind, whose
// memory is the host's. NVIDIA's driver runs PTX with an interpreter (Ptx.h); AMD's reads code
// objects, and its kernels do nothing. Work that is given to a stream is done when the stream is
// waited for, not before. Every call is recorded and checked (live handles, a current context,
// allocated memory, order), and tests can make it fail.
#ifndef CTXC_TEST_FAKE_GPU_FAKEGPU_H
#define CTXC_TEST_FAKE_GPU_FAKEGPU_H

#include <cstddef>
#include <string>
#include <vector>

namespace fake_gpu {

struct Options {
  std::vector<int> devices{90}; ///< 10 · major + minor version of each
  size_t memory = size_t(1) << 30;
  std::string failing;        ///< the function that fails,
  int failingCall = 1;        ///< at this call of it, counted from 1,
  int result = 0;             ///< with this result
  std::string compilerLog;    ///< what cuModuleLoadDataEx reports when it fails to load code
  std::string faultingKernel; ///< a kernel that ends with an illegal access
  int faultingLaunch = 1;     ///< in this of its launches, counted from 1
  unsigned mostThreads = 1024;
};

/// Forgets all calls, problems and live objects.
void reset();
Options &options();
/// The names of the functions called, in order.
const std::vector<std::string> &calls();
int countOf(const std::string &function);
/// Wrong calls, and errors of kernels.
const std::vector<std::string> &problems();
/// Objects that are alive: memory, streams, graphs, contexts.
std::vector<std::string> alive();
/// The kernels that have run, in order.
const std::vector<std::string> &kernels();

} // namespace fake_gpu

#endif // CTXC_TEST_FAKE_GPU_FAKEGPU_H
