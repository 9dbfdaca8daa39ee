// Memory for what a kernel call needs while it runs, used again by the next.
#ifndef CTXC_LIB_RUNTIME_WORKSPACE_H
#define CTXC_LIB_RUNTIME_WORKSPACE_H

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace ctxc {

class Workspace {
public:
  /// At least `bytes`, aligned to 64; what the last call gave is lost. They hold anything: what no
  /// kernel touches is never resident. Large ones are of large pages, where the system has them.
  void *take(int64_t bytes);

private:
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};
  int64_t size = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_WORKSPACE_H
