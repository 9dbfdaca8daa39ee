//===- CostReport.h - how much a token moves and computes on a GPU --------===//
//
// The compiler counts the cost of each launch (GpuCost); these functions sum it over a token's
// kernels. If the device's speed is given, they also predict the least time.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_COSTREPORT_H
#define CTXC_REPORT_COSTREPORT_H

#include "ctxc/Lowering/GPU.h"
#include "ctxc/Program/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace ctxc {

/// The run that costs are counted for, and the device.
struct CostOptions {
  int64_t visible[2] = {1024, 1};        ///< tokens that the (full) run and the reduced run see
  std::optional<double> bandwidth, rate; ///< of the device: bytes and operations a second

  bool hasTimes() const { return bandwidth || rate; }
};

/// The cost of a launch, or of all launches of a token. The bytes and operations are GpuCost's.
struct Cost {
  int64_t weights = 0, cache = 0, patch = 0, activations = 0, operations = 0, launches = 0;
  double seconds = 0; ///< the larger of bytes / bandwidth and operations / rate, per launch

  int64_t bytes() const { return weights + cache + patch + activations; }
  Cost &operator+=(const Cost &other);
};

struct LaunchCost {
  std::string name; ///< of the function in the gpu.module
  int64_t blocks = 1, threads = 1;
  Cost cost;
};

/// The cost of a token in one kind of run.
struct TokenCost {
  std::string key;  ///< in JSON: forward, applied or dual
  std::string name; ///< in text
  Cost cost;
  std::vector<std::pair<std::string, int64_t>> times; ///< how often each launch runs
};

struct TokenCosts {
  std::string target;
  int64_t rows = 1; ///< tokens of a kernel; more than one are a chunk of a prompt
  CostOptions options;
  std::vector<LaunchCost> launches;
  std::vector<TokenCost> tokens; ///< without those that need a kernel without a GPU form
};

/// Sums the costs of `kernels`, the kernels of the program's blocks, named with `prefix`. Fails if
/// a launch's cost is not a linear function of the visible tokens.
llvm::Expected<TokenCosts> countCosts(const Program &program, llvm::ArrayRef<GpuKernel> kernels,
                                      llvm::StringRef prefix, const GpuTarget &target,
                                      const CostOptions &options);

void writeCostText(const TokenCosts &costs, llvm::raw_ostream &os);
void writeCostJson(const TokenCosts &costs, llvm::raw_ostream &os);

} // namespace ctxc

#endif // CTXC_REPORT_COSTREPORT_H
