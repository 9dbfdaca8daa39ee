/* What ranks need of MPI, as a library of functions.
 *
 * MPICH and OpenMPI have other types and constants in mpi.h, so that a program is compiled for one
 * of them. Here that is mpi.c alone, once for each that is installed; ctxc loads the one whose
 * mpirun started it, and needs none to run by itself.
 *
 * Messages are whole 8-byte words. Functions return 0, or MPI's error code; none of them waits but
 * start and finish. They are called by one thread at a time. */
#ifndef CTXC_LIB_RUNTIME_SHARD_CTXC_MPI_H
#define CTXC_LIB_RUNTIME_SHARD_CTXC_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctxc_mpi {
  /* Joins the ranks that mpirun started. `local`: how many of them share this machine;
   * `number`: which of these this one is. */
  int (*start)(int *rank, int *ranks, int *local, int *number);
  /* Begins to send; `request` is done when `done` says so, and `words` must not change before that.
   */
  int (*send)(const uint64_t *words, int count, int to, int tag, void **request);
  /* Whether a message with this tag has come from `from` (−1: from any rank), and how long it is.
   */
  int (*probe)(int from, int tag, int *there, int *source, int *count);
  /* Begins to receive a message that `probe` found. */
  int (*receive)(uint64_t *words, int count, int from, int tag, void **request);
  /* Whether a request is done; it is freed then. */
  int (*done)(void *request, int *done);
  /* Waits until all ranks have called it. */
  int (*finish)(void);
  /* Ends all ranks' processes with this exit code. */
  void (*abort)(int code);
  /* The text of an error code; the library's name and version. */
  void (*message)(int code, char *text, int size);
  void (*version)(char *text, int size);
} ctxc_mpi;

/* The one symbol of the library. */
const ctxc_mpi *ctxc_mpi_functions(void);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_LIB_RUNTIME_SHARD_CTXC_MPI_H */
