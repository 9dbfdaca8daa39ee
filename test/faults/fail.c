// Loaded before a program (LD_PRELOAD), makes one of its calls fail: the one with the number
// CTXC_FAULT_AT, counted from 1, of the kind CTXC_FAULT. Without a number all are counted, and the
// count is written to the file CTXC_FAULT_COUNT when the program ends.
//
//   file     calls that change files: open to write, write, rename, fsync, ftruncate, mkdir,
//   unlink.
//            Fails as on a full disk.
//   short    a write takes half of its bytes, as it may
//   map      mmap of a file, or of at least a MiB
//   memory   malloc and its relatives, of at least CTXC_FAULT_SIZE bytes
//   kill     as file, and the process is killed in place of the call
//   killed   the process is killed behind it
//
// Of the kind `aligned` no call fails: an allocator that aligns a block of eight bytes or less for
// numbers of eight bytes and no more, as jemalloc's, mimalloc's and tcmalloc's may, and glibc's
// does not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum Kind { None, File, Short, Map, Memory, Kill, Killed, Aligned };
enum { largeMap = 1 << 20 };

static enum Kind kind;
static long at;
static size_t leastSize = 1 << 16;
static atomic_long count;
static int dieBehind;

static void begin(void) {
  static const char *const names[] = {"",       "file", "short",  "map",
                                      "memory", "kill", "killed", "aligned"};
  const char *wanted = getenv("CTXC_FAULT"), *number = getenv("CTXC_FAULT_AT");
  const char *size = getenv("CTXC_FAULT_SIZE");
  at = number ? atol(number) : 0;
  if (size)
    leastSize = atol(size);
  for (int i = 1; wanted && i <= Aligned; ++i)
    if (!strcmp(wanted, names[i]))
      kind = i;
}

// Before main, so that what the loader and the libraries themselves need does not count.
__attribute__((constructor)) static void load(void) { begin(); }

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("CTXC_FAULT_COUNT");
  kind = None;
  if (!path)
    return;
  FILE *file = fopen(path, "w");
  if (file) {
    fprintf(file, "%ld\n", (long)count);
    fclose(file);
  }
}

/// Whether this call is the one.
static int isNow(void) { return atomic_fetch_add(&count, 1) + 1 == at; }

/// Whether this call, which changes files, fails now.
static int fails(void) {
  if (kind == File)
    return isNow();
  if (kind == Kill && isNow())
    kill(getpid(), SIGKILL);
  if (kind == Killed && isNow())
    dieBehind = 1;
  return 0;
}

static long after(long result) {
  if (dieBehind)
    kill(getpid(), SIGKILL);
  return result;
}

static int isRegular(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FULL (errno = ENOSPC, -1)

ssize_t write(int descriptor, const void *data, size_t size) {
  if (kind != None && isRegular(descriptor)) {
    if (fails())
      return FULL;
    if (kind == Short && size > 1 && isNow())
      size /= 2;
  }
  return after(REAL(write)(descriptor, data, size));
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
  if (fails())
    return FULL;
  if (kind == Short && size > 1 && isNow())
    size /= 2;
  return after(REAL(pwrite)(descriptor, data, size, offset));
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
  return pwrite(descriptor, data, size, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int number) {
  if (kind != None && isRegular(descriptor) && fails())
    return FULL;
  return after(REAL(writev)(descriptor, parts, number));
}

static int opens(const char *path, int flags) {
  return (flags & O_ACCMODE) != O_RDONLY && strncmp(path, "/dev/", 5) && fails();
}
#define MODE(flags)                                                                                \
  mode_t mode = 0;                                                                                 \
  if (flags & O_CREAT) {                                                                           \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode = va_arg(rest, mode_t);                                                                   \
    va_end(rest);                                                                                  \
  }

int open(const char *path, int flags, ...) {
  MODE(flags)
  return opens(path, flags) ? FULL : after(REAL(open)(path, flags, mode));
}
int open64(const char *path, int flags, ...) {
  MODE(flags)
  return opens(path, flags) ? FULL : after(REAL(open64)(path, flags, mode));
}
int openat(int folder, const char *path, int flags, ...) {
  MODE(flags)
  return opens(path, flags) ? FULL : after(REAL(openat)(folder, path, flags, mode));
}

int rename(const char *from, const char *to) {
  return fails() ? FULL : after(REAL(rename)(from, to));
}
int renameat(int a, const char *from, int b, const char *to) {
  return fails() ? FULL : after(REAL(renameat)(a, from, b, to));
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return fails() ? FULL : after(REAL(renameat2)(a, from, b, to, flags));
}
int link(const char *from, const char *to) { return fails() ? FULL : after(REAL(link)(from, to)); }
int fsync(int descriptor) { return fails() ? FULL : after(REAL(fsync)(descriptor)); }
int fdatasync(int descriptor) { return fails() ? FULL : after(REAL(fdatasync)(descriptor)); }
int ftruncate(int descriptor, off_t size) {
  return fails() ? FULL : after(REAL(ftruncate)(descriptor, size));
}
int ftruncate64(int descriptor, off64_t size) { return ftruncate(descriptor, size); }
int mkdir(const char *path, mode_t mode) { return fails() ? FULL : after(REAL(mkdir)(path, mode)); }

// A file that cannot be removed can be left; that a process dies there must do no harm.
int unlink(const char *path) {
  if (kind == Kill || kind == Killed)
    fails();
  return after(REAL(unlink)(path));
}

void *mmap(void *where, size_t size, int protection, int flags, int descriptor, off_t offset) {
  if (kind == Map && (descriptor >= 0 || size >= largeMap) && isNow()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return REAL(mmap)(where, size, protection, flags, descriptor, offset);
}
void *mmap64(void *where, size_t size, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(where, size, protection, flags, descriptor, offset);
}

//===--- Memory: glibc's own names, since dlsym needs memory itself ----------===//

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static int isRefused(size_t size) {
  if (kind != Memory || size < leastSize || !isNow())
    return 0;
  errno = ENOMEM;
  return 1;
}

// glibc's blocks begin at multiples of sixteen, so these are those that do not.
enum { shift = 8 };
static int isShifted(const void *block) { return (uintptr_t)block % 16 == shift; }
static void *shifted(char *block) { return block ? block + shift : NULL; }
static int isSmall(size_t size) { return kind == Aligned && size <= shift; }

void *malloc(size_t size) {
  if (isSmall(size))
    return shifted(__libc_malloc(shift + size));
  return isRefused(size) ? NULL : __libc_malloc(size);
}
void *calloc(size_t number, size_t size) {
  size_t all;
  if (!__builtin_mul_overflow(number, size, &all)) {
    if (isSmall(all))
      return shifted(__libc_calloc(1, shift + all));
    if (isRefused(all))
      return NULL;
  }
  return __libc_calloc(number, size);
}
void free(void *block) { __libc_free(isShifted(block) ? (char *)block - shift : block); }
void *realloc(void *old, size_t size) {
  if (!isShifted(old) && !(isSmall(size) && !old))
    return isRefused(size) ? NULL : __libc_realloc(old, size);
  void *block = malloc(size);
  if (block && old)
    memcpy(block, old, size < shift ? size : shift);
  if (block || !size)
    free(old);
  return block;
}
size_t malloc_usable_size(void *block) {
  return isShifted(block) ? shift : REAL(malloc_usable_size)(block);
}
void *memalign(size_t alignment, size_t size) {
  return isRefused(size) ? NULL : __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **to, size_t alignment, size_t size) {
  void *found = memalign(alignment, size);
  if (!found)
    return ENOMEM;
  *to = found;
  return 0;
}
