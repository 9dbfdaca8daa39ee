// If this library is loaded before a program (LD_PRELOAD), the program runs many command lines,
// each in a process of its own. The processes are forked after the libraries have been loaded and
// initialised, which takes most of the time of a short run of ctxc.
//
// A request on the standard input is its size (32 bits, little endian), and strings that each end
// in a zero byte: the file for the standard output, the file for the standard error, and the
// command line. The answer on the standard output is the status from waitpid, 32 bits.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int, char **, char **);
typedef int Start(Main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static Main *programsMain;

static void redirect(const char *path, int to) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, to) < 0) {
    perror(path);
    _exit(127);
  }
  close(file);
}

static int runRequest(char *text, uint32_t size, char **environment) {
  char *words[4096];
  int count = 0;
  for (char *at = text; at < text + size && count < 4095; at += strlen(at) + 1)
    words[count++] = at;
  words[count] = NULL;
  if (count < 3)
    return 127;
  redirect(words[0], STDOUT_FILENO);
  redirect(words[1], STDERR_FILENO);
  int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
  return programsMain(count - 2, words + 2, environment);
}

static int readAll(void *to, size_t size) {
  char *at = to;
  for (ssize_t count; size; at += count, size -= count)
    if ((count = read(STDIN_FILENO, at, size)) <= 0)
      return 0;
  return 1;
}

static int serve(int argc, char **argv, char **environment) {
  unsetenv("LD_PRELOAD"); // programs that this one starts are started normally
  for (uint32_t size; readAll(&size, sizeof size);) {
    char *text = malloc(size + 1);
    if (!text || !readAll(text, size))
      return 1;
    text[size] = 0;
    pid_t child = fork();
    if (child == 0)
      exit(runRequest(text, size, environ));
    int32_t status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child ||
        write(STDOUT_FILENO, &status, sizeof status) != sizeof status)
      return 1;
    free(text);
  }
  return 0;
}

int __libc_start_main(Main *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loaderFini)(void), void *stackEnd) {
  programsMain = main;
  Start *start = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(serve, argc, argv, init, fini, loaderFini, stackEnd);
}
