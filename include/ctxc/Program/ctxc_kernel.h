/*===- ctxc_kernel.h - how generated kernels are called ---------------------===
 *
 * The whole interface between a generated kernel and its caller, in C. A kernel is
 * one block's step for some tokens; their activations are the rows of its inputs and
 * outputs. It keeps no state, starts no thread and allocates nothing: its caller owns
 * every buffer and provides the threads.
 *
 *   1. Call <prefix>_refusal(CTXC_KERNEL_ABI_VERSION): it returns NULL, or why this
 *      library cannot be used.
 *   2. Take the kernel's argument list from the manifest (or the generated
 *      header), and give one pointer for each, in that order, in `arguments`.
 *      Arrays are row-major without gaps; only their elements need to be aligned.
 *   3. Give a workspace of at least <kernel>_workspace(rows, visible) bytes,
 *      aligned to 64.
 *   4. Call <kernel>(&call), and look at the status that it returns. Calls that
 *      share no output, state or workspace may run at the same time.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_KERNEL_H
#define CTXC_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTXC_KERNEL_ABI_VERSION 2

/* What a kernel returns. */
enum {
  CTXC_GOOD = 0,      /* all is written */
  CTXC_INEXACT = 1,   /* all is written, and a harmful count went up: a condition under which the
                         patch is exact does not hold for these data */
  CTXC_WRONG_CPU = -1 /* nothing is written: this machine lacks what the code needs */
};

/* Runs body(data, begin, end) over ranges that together cover [0, count) once,
 * in any order, on any threads, and returns when all are done. */
typedef void (*ctxc_parallel_for)(void *context, int64_t count,
                                  void (*body)(void *data, int64_t begin, int64_t end), void *data);

typedef struct ctxc_call {
  int64_t rows;           /* S: tokens of this call */
  int64_t visible[2];     /* how many tokens are seen: in the run (or the full run) those with a
                             state, these S included; in the reduced run, where each of the S is
                             alone after the kept tokens, the number of kept tokens plus one */
  void *const *arguments; /* one pointer for each argument, in the manifest's order */
  void *workspace;
  ctxc_parallel_for parallel_for;
  void *parallel_context;
} ctxc_call;

/* const char *<prefix>_refusal(int32_t abi_version);
 * int32_t <kernel>(const ctxc_call *call);
 * int64_t <kernel>_workspace(int64_t rows, int64_t visible0, int64_t visible1); */

#ifdef __cplusplus
}
#endif

#endif /* CTXC_KERNEL_H */
