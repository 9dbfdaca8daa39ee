#include "lib/Runtime/ParallelFor.h"
#include <omp.h>

int ctxc::threadCount(int asked) { return asked > 0 ? asked : omp_get_num_procs(); }

void ctxc::parallelFor(void *context, int64_t count, void (*body)(void *, int64_t, int64_t),
                       void *data) {
  int64_t threads = *static_cast<int *>(context);
  if (threads <= 1 || count < 2 * threads) {
    body(data, 0, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    int64_t id = omp_get_thread_num(), team = omp_get_num_threads();
    body(data, count * id / team, count * (id + 1) / team);
  }
}
