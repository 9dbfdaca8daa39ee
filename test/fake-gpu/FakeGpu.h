// Drivers of GPUs for tests: a libcuda.so.1 and a libamdhip64.so.7 of devices of any kind, whose
// memory is the host's. NVIDIA's runs PTX, by an interpreter (Ptx.h); AMD's reads code objects, and
// its kernels do nothing. What a stream is given to do is done when it is waited for, not before.
// Every call is recorded, checked (live handles, a current context, memory that is there, order),
// and can be told to fail.
#ifndef CTXC_TEST_FAKE_GPU_FAKEGPU_H
#define CTXC_TEST_FAKE_GPU_FAKEGPU_H

#include <cstddef>
#include <string>
#include <vector>

namespace fake_gpu {

struct Options {
  std::vector<int> devices{90}; ///< 10 · major + minor of each
  size_t memory = size_t(1) << 30;
  std::string failing;        ///< the function that fails,
  int failingCall = 1;        ///< at this call, from 1 on,
  int result = 0;             ///< with this
  std::string compilerLog;    ///< of code that does not load, when cuModuleLoadDataEx fails
  std::string faultingKernel; ///< that ends with an illegal access
  int faultingLaunch = 1;     ///< when it is run for this time
  unsigned mostThreads = 1024;
};

/// Forgets everything; what is alive counts no longer.
void reset();
Options &options();
/// The names of the functions called, in order.
const std::vector<std::string> &calls();
int countOf(const std::string &function);
/// What was called wrongly, and what kernels did wrong.
const std::vector<std::string> &problems();
/// What is alive: memory, streams, graphs, contexts.
std::vector<std::string> alive();
/// Kernels that ran, in order.
const std::vector<std::string> &kernels();

} // namespace fake_gpu

#endif // CTXC_TEST_FAKE_GPU_FAKEGPU_H
