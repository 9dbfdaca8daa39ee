//===- ParallelFor.h - threads that the caller provides -------------------===//
#ifndef CTXC_PROGRAM_PARALLELFOR_H
#define CTXC_PROGRAM_PARALLELFOR_H

#include "ctxc/Program/ctxc_kernel.h"
#include "llvm/ADT/STLExtras.h"

namespace ctxc {

/// A parallel-for of ctxc_kernel.h and the context that it is called with, which must outlive all
/// calls. Results do not depend on how it divides a range, to the last bit. It is called
/// from the thread that called the executor, and never from within a range's body.
struct ParallelFor {
  ctxc_parallel_for run = [](void *, int64_t count, void (*body)(void *, int64_t, int64_t),
                             void *data) { body(data, 0, count); };
  void *context = nullptr;

  /// body(begin, end) over ranges that together cover [0, count) once.
  void operator()(int64_t count, llvm::function_ref<void(int64_t, int64_t)> body) const {
    auto call = [](void *data, int64_t begin, int64_t end) {
      (*static_cast<llvm::function_ref<void(int64_t, int64_t)> *>(data))(begin, end);
    };
    run(context, count, call, &body);
  }
};

} // namespace ctxc

#endif // CTXC_PROGRAM_PARALLELFOR_H
