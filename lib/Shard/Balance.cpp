#include "ctxc/Shard/Balance.h"
#include <cassert>
#include <limits>

using namespace ctxc;

std::vector<size_t> shard::leastLargest(llvm::ArrayRef<double> weights, size_t count) {
  const size_t n = weights.size();
  assert(count >= 1 && count <= n && "a group would be empty");
  std::vector<double> before(n + 1);
  for (size_t i = 0; i < n; ++i)
    before[i + 1] = before[i] + weights[i];
  // least[g][i]: the least largest sum of the first i in g groups; cut[g][i]: where the last
  // begins.
  const double unreached = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(count + 1, std::vector<double>(n + 1, unreached));
  std::vector<std::vector<size_t>> cut(count + 1, std::vector<size_t>(n + 1));
  least[0][0] = 0;
  for (size_t g = 1; g <= count; ++g)
    for (size_t i = g; i <= n; ++i)
      for (size_t from = g - 1; from < i; ++from) {
        double largest = std::max(least[g - 1][from], before[i] - before[from]);
        if (largest < least[g][i]) {
          least[g][i] = largest;
          cut[g][i] = from;
        }
      }
  std::vector<size_t> ends(count);
  for (size_t g = count, end = n; g > 0; end = cut[g--][end])
    ends[g - 1] = end;
  return ends;
}
