// The executor's own threads for kernels.
#ifndef CTXC_LIB_RUNTIME_PARALLELFOR_H
#define CTXC_LIB_RUNTIME_PARALLELFOR_H

#include <cstdint>

namespace ctxc {

/// The number of threads: `asked`, or one for each core where that is 0.
int threadCount(int asked);

/// The ctxc_parallel_for of ctxc_kernel.h; `context` points to the number of threads.
void parallelFor(void *context, int64_t count, void (*body)(void *, int64_t, int64_t), void *data);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_PARALLELFOR_H
