// How a C++ program calls kernels: it brings a workspace and threads.
#pragma once

#include "layer.h"
#include <cstddef>
#include <cstdint>
#include <omp.h>
#include <vector>

/// An argument's place, from the generated header, and its address.
struct Argument {
  int place;
  const void *address;
};

class Caller {
public:
  /// Calls `kernel`; the status is one of ctxc_kernel.h's.
  int32_t operator()(int32_t (*kernel)(const ctxc_call *),
                     int64_t (*workspaceBytes)(int64_t, int64_t, int64_t), int64_t rows,
                     int64_t visible, int64_t visibleReduced,
                     const std::vector<Argument> &arguments) {
    std::vector<void *> addresses(arguments.size());
    for (const Argument &argument : arguments)
      addresses.at(argument.place) = const_cast<void *>(argument.address);
    workspace.resize(workspaceBytes(rows, visible, visibleReduced) / sizeof(Line) + 1);
    ctxc_call call = {
        rows, {visible, visibleReduced}, addresses.data(), workspace.data(), &parallelFor, nullptr};
    return kernel(&call);
  }

private:
  struct alignas(64) Line {
    char bytes[64];
  };

  /// One range for each thread: a kernel reads a long range at the speed of memory.
  static void parallelFor(void *, int64_t count, void (*body)(void *, int64_t, int64_t),
                          void *data) {
#pragma omp parallel
    {
      int64_t id = omp_get_thread_num(), threads = omp_get_num_threads();
      body(data, count * id / threads, count * (id + 1) / threads);
    }
  }

  std::vector<Line> workspace; ///< kept from call to call
};
