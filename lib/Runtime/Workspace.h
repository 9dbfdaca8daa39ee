// Memory that a kernel call needs while it runs, and that the next call reuses.
#ifndef CTXC_LIB_RUNTIME_WORKSPACE_H
#define CTXC_LIB_RUNTIME_WORKSPACE_H

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace ctxc {

class Workspace {
public:
  /// At least `bytes`, aligned to 64, with any contents; the memory of the last call is lost. Null
  /// where there is none. Pages that no kernel touches are never resident. Large workspaces are in large pages, where the
  /// system has them.
  void *take(int64_t bytes);

private:
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};
  int64_t size = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_WORKSPACE_H
