/* ctxc_mpi.h over the MPI whose mpi.h this file is compiled with. */
#include "ctxc_mpi.h"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm ranks_comm;

static int start(int *rank, int *ranks, int *local, int *number) {
  int given, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
  if (code)
    return code;
  if (given < MPI_THREAD_SERIALIZED)
    return MPI_ERR_OTHER;
  if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &ranks_comm)))
    return code;
  MPI_Comm_set_errhandler(ranks_comm, MPI_ERRORS_RETURN);
  MPI_Comm here;
  if ((code = MPI_Comm_split_type(ranks_comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here)))
    return code;
  MPI_Comm_size(here, local);
  MPI_Comm_rank(here, number);
  MPI_Comm_free(&here);
  MPI_Comm_rank(ranks_comm, rank);
  MPI_Comm_size(ranks_comm, ranks);
  return 0;
}

static MPI_Request *request_of(void) { return malloc(sizeof(MPI_Request)); }

static int send_words(const uint64_t *words, int count, int to, int tag, void **request) {
  *request = request_of();
  return *request ? MPI_Isend(words, count, MPI_UINT64_T, to, tag, ranks_comm, *request)
                  : MPI_ERR_NO_MEM;
}

static int probe(int from, int tag, int *there, int *source, int *count) {
  MPI_Status status;
  int code = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, ranks_comm, there, &status);
  if (code || !*there)
    return code;
  *source = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_UINT64_T, count);
}

static int receive_words(uint64_t *words, int count, int from, int tag, void **request) {
  *request = request_of();
  return *request ? MPI_Irecv(words, count, MPI_UINT64_T, from, tag, ranks_comm, *request)
                  : MPI_ERR_NO_MEM;
}

static int done(void *request, int *is_done) {
  int code = MPI_Test(request, is_done, MPI_STATUS_IGNORE);
  if (code || *is_done)
    free(request);
  return code;
}

static int finish(void) {
  MPI_Comm_free(&ranks_comm);
  return MPI_Finalize();
}

static void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static void message(int code, char *text, int size) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, whole, &length);
  strncpy(text, whole, size - 1);
  text[size - 1] = 0;
}

static void version(char *text, int size) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length;
  MPI_Get_library_version(whole, &length);
  strncpy(text, whole, size - 1);
  text[size - 1] = 0;
}

const ctxc_mpi *ctxc_mpi_functions(void) {
  static const ctxc_mpi functions = {start,  send_words, probe,   receive_words, done,
                                     finish, abort_all,  message, version};
  return &functions;
}
