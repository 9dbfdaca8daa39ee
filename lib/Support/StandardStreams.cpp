#include "ctxc/Support/StandardStreams.h"
#include <fcntl.h>
#include <unistd.h>

void ctxc::openStandardStreams() {
  // open(2) takes the lowest descriptor that is free.
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0)
      (void)!::open("/dev/null", O_RDWR);
}
