#include "lib/Runtime/ParallelFor.h"
#include <omp.h>

int ctxc::threadCount(int asked) { return asked > 0 ? asked : omp_get_num_procs(); }

void ctxc::parallelFor(void *context, int64_t count, void (*body)(void *, int64_t, int64_t),
                       void *data) {
  int64_t threads = *static_cast<int *>(context);
  if (threads <= 1 || count < 2) {
    body(data, 0, count);
    return;
  }
  // Always all threads, even idle ones: OpenMP would create a team of another size anew.
#pragma omp parallel num_threads(threads)
  {
    int64_t id = omp_get_thread_num(), team = omp_get_num_threads();
    int64_t begin = count * id / team, end = count * (id + 1) / team;
    if (begin < end)
      body(data, begin, end);
  }
}
