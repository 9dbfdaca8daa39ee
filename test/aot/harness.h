/* Shared by the programs here: buffers that are aligned only to their elements, inside other memory
 * that must not change; weights in their storage type; threads; and the call itself. A program is
 * compiled with the model's sizes D, HEADS, GROUPS, E, M, VOCABULARY, and with WEIGHT, which is
 * F32, BF16 or F16. */
#ifndef CTXC_TEST_AOT_HARNESS_H
#define CTXC_TEST_AOT_HARNESS_H

#include "kernels.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { F32, BF16, F16 };
#define EPS 1e-05 /* rms_norm_eps of the model */

static int failures;

/* Memory ------------------------------------------------------------------*/

enum { MARGIN = 67 }; /* elements before a slice, so that it starts at an odd one */

/* Memory for `count` elements of `size` bytes. Every second slice ends where accessible memory
 * ends, so that reading beyond it crashes. All bits before every slice, and after the others, are
 * one, which is a NaN. */
static inline void *slice(int64_t count, int64_t size) {
  static int64_t made;
  int64_t page = sysconf(_SC_PAGESIZE), after = made++ % 2 ? MARGIN * size : 0;
  int64_t bytes = (MARGIN + count) * size + after, pages = (bytes + page - 1) / page * page;
  unsigned char *memory =
      mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + pages, page, PROT_NONE)) {
    fprintf(stderr, "no memory\n");
    exit(2);
  }
  memset(memory, 0xff, pages);
  return memory + pages - after - count * size;
}
static inline void check_margins(const char *what, const void *data, int64_t count, int64_t size) {
  const unsigned char *begin = data, *end = begin + count * size;
  int64_t page = sysconf(_SC_PAGESIZE), after = (uintptr_t)end % page ? MARGIN * size : 0;
  for (int64_t i = 0; i < MARGIN * size; ++i)
    if (begin[-1 - i] != 0xff || (i < after && end[i] != 0xff)) {
      fprintf(stderr, "%s: the bytes around it were written\n", what);
      ++failures;
      return;
    }
}

static uint64_t state = 1;
/* A multiple of 1/64 in [-1/2, 1/2], which every storage type represents exactly. */
static inline float number(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)((int)((state >> 33) % 65) - 32) / 64;
}
static inline float *numbers(int64_t count) {
  float *x = slice(count, sizeof(float));
  for (int64_t i = 0; i < count; ++i)
    x[i] = number();
  return x;
}

/* A weight, in its storage type and as float32. */
typedef struct {
  void *stored;
  float *values;
} weight;
static inline uint16_t half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (WEIGHT == BF16 || x == 0)
    return bits >> 16;
  return (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff);
}
static inline weight weights(int64_t count) {
  float *values = numbers(count);
  if (WEIGHT == F32)
    return (weight){values, values};
  uint16_t *stored = slice(count, sizeof *stored);
  for (int64_t i = 0; i < count; ++i)
    stored[i] = half(values[i]);
  return (weight){stored, values};
}

/* Threads -----------------------------------------------------------------*/

typedef void range_body(void *, int64_t, int64_t);
typedef struct {
  range_body *body;
  void *data;
  int64_t begin, end;
} range;
static inline void *run_range(void *argument) {
  range *r = argument;
  r->body(r->data, r->begin, r->end);
  return NULL;
}
/* Runs a range in each of *context threads. */
static inline void on_threads(void *context, int64_t count, range_body *body, void *data) {
  int n = *(int *)context;
  pthread_t threads[8];
  range ranges[8];
  for (int i = 0; i < n; ++i)
    ranges[i] = (range){body, data, count * i / n, count * (i + 1) / n};
  for (int i = 1; i < n; ++i)
    pthread_create(&threads[i], NULL, run_range, &ranges[i]);
  run_range(&ranges[0]);
  for (int i = 1; i < n; ++i)
    pthread_join(threads[i], NULL);
}

/* Calls -------------------------------------------------------------------*/

static void *library;

static inline void open_library(int count, char **names) {
  library = count == 2 ? dlopen(names[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "no library: %s\n", count == 2 ? dlerror() : "expected its path");
    exit(2);
  }
  const char *(*refusal)(int32_t) =
      (const char *(*)(int32_t))(uintptr_t)dlsym(library, "ctxc_refusal");
  const char *reason = refusal(CTXC_KERNEL_ABI_VERSION);
  if (reason) {
    fprintf(stderr, "%s refuses: %s\n", names[1], reason);
    exit(2);
  }
  if (!refusal(CTXC_KERNEL_ABI_VERSION + 1)) {
    fprintf(stderr, "the library takes callers of another version of the ABI\n");
    ++failures;
  }
}

/* Calls a kernel with a workspace between marks that must not change. */
static inline int32_t call_kernel(const char *name, void *const *arguments, int64_t rows,
                                  int64_t visible0, int64_t visible1,
                                  ctxc_parallel_for parallel_for, void *context) {
  char size_name[64];
  snprintf(size_name, sizeof size_name, "%s_workspace", name);
  int32_t (*kernel)(const ctxc_call *) =
      (int32_t (*)(const ctxc_call *))(uintptr_t)dlsym(library, name);
  int64_t (*size)(int64_t, int64_t, int64_t) =
      (int64_t (*)(int64_t, int64_t, int64_t))(uintptr_t)dlsym(library, size_name);
  if (!kernel || !size) {
    fprintf(stderr, "%s is not in the library\n", name);
    exit(1);
  }
  int64_t bytes = (size(rows, visible0, visible1) + 63) / 64 * 64;
  unsigned char *memory = aligned_alloc(64, bytes + 128);
  memset(memory, 0x5a, bytes + 128);
  ctxc_call call = {rows, {visible0, visible1}, arguments, memory + 64, parallel_for, context};
  int32_t status = kernel(&call);
  for (int i = 0; i < 64; ++i)
    if (memory[i] != 0x5a || memory[64 + bytes + i] != 0x5a) {
      fprintf(stderr, "%s wrote beside its workspace of %lld bytes\n", name, (long long)bytes);
      ++failures;
      break;
    }
  free(memory);
  return status;
}

#endif
