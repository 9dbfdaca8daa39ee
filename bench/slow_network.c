/* MPI whose messages take as long as a network's: loaded before ctxc (LD_PRELOAD), it hides each message from its
 * receiver until CTXC_SLOW_SECONDS and its bytes at CTXC_SLOW_BYTES a second have passed. What a rank sends goes one
 * after the other, as through one cable. It knows the calls of MPI that ctxc makes (lib/Runtime/Shard/mpi.c).
 *
 * The ranks of one machine share the times at which messages arrive, in the file CTXC_SLOW_FILE. */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { most_ranks = 8, most_messages = 1024 };

/* When a message is there, and whether it was taken. */
typedef struct {
  int tag;
  double due;
  int is_taken;
} arrival;

/* The messages from one rank to another, in order, in a ring. */
typedef struct {
  atomic_long sent;
  long first; /* all before it were taken; of the receiver alone */
  arrival ring[most_messages];
} way;

static way *ways; /* by sender and receiver */
static int own = -1;
static double seconds, bytes_a_second, free_from;

static void give_up(const char *reason) {
  fprintf(stderr, "slow_network: %s\n", reason);
  _exit(2);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static way *way_between(int from, int to) {
  if (own < 0) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    const char *latency = getenv("CTXC_SLOW_SECONDS"), *speed = getenv("CTXC_SLOW_BYTES");
    const char *path = getenv("CTXC_SLOW_FILE");
    if (!latency || !speed || !path)
      give_up("expected CTXC_SLOW_SECONDS, CTXC_SLOW_BYTES and CTXC_SLOW_FILE");
    seconds = atof(latency);
    bytes_a_second = atof(speed);
    const size_t size = sizeof(way) * most_ranks * most_ranks;
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, size))
      give_up("CTXC_SLOW_FILE cannot be written");
    ways = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (ways == MAP_FAILED)
      give_up("CTXC_SLOW_FILE cannot be mapped");
  }
  if (from >= most_ranks || to >= most_ranks)
    give_up("more ranks than 8");
  return &ways[from * most_ranks + to];
}

/* The first message with this tag that was not taken; null while it is not known. */
static arrival *next_of(way *way, int tag) {
  const long sent = atomic_load(&way->sent);
  for (long i = way->first; i < sent; ++i) {
    arrival *each = &way->ring[i % most_messages];
    if (each->tag == tag && !each->is_taken)
      return each;
  }
  return NULL;
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  way_between(0, 0); /* which rank this is */
  way *way = way_between(own, to);
  int size;
  PMPI_Type_size(type, &size);
  const double begin = now();
  free_from = (free_from > begin ? free_from : begin) + (double)count * size / bytes_a_second;
  const long number = atomic_load(&way->sent);
  way->ring[number % most_messages] = (arrival){tag, free_from + seconds, 0};
  atomic_store(&way->sent, number + 1);
  return PMPI_Isend(from, count, type, to, tag, comm, request);
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
  const int code = PMPI_Iprobe(from, tag, comm, there, status);
  if (code || !*there)
    return code;
  way_between(0, 0);
  const arrival *next = next_of(way_between(status->MPI_SOURCE, own), tag);
  *there = next && next->due <= now();
  return code;
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  way *way = way_between(from, own);
  arrival *next = next_of(way, tag);
  if (!next)
    give_up("a message that was not probed");
  next->is_taken = 1;
  while (way->first < atomic_load(&way->sent) && way->ring[way->first % most_messages].is_taken)
    ++way->first;
  return PMPI_Irecv(to, count, type, from, tag, comm, request);
}
