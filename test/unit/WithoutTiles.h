// Tile registers that are not used, and a process that Linux refuses them.
#ifndef CTXC_TEST_UNIT_WITHOUTTILES_H
#define CTXC_TEST_UNIT_WITHOUTTILES_H

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ctxc::test {

/// While it lives, kernels that are compiled for this process use no tile registers.
class TilesOff {
public:
  TilesOff() { ::setenv("CTXC_AMX", "off", /*overwrite=*/1); }
  ~TilesOff() { ::unsetenv("CTXC_AMX"); }
};

constexpr int hadTiles = 77;

/// Whether this process has asked for the registers, and got them.
inline bool hasTiles() {
#ifdef __x86_64__
  uint64_t granted = 0;
  constexpr long getPermissions = 0x1022, tileData = 1 << 18; // ARCH_GET_XCOMP_PERM
  return syscall(SYS_arch_prctl, getPermissions, &granted) == 0 && (granted & tileData);
#else
  return false;
#endif
}

/// Calls `isGood` in a process of its own, whose stack for signals has no room for the registers;
/// Linux refuses it them for that. Returns 0 where the result is true, and `hadTiles` where this
/// process already has the registers, since others inherit them.
template <typename IsGood> int withoutTiles(IsGood isGood) {
  if (hasTiles())
    return hadTiles;
  pid_t child = fork();
  if (child == 0) {
    static char small[4096];
    stack_t stack = {};
    stack.ss_sp = small;
    stack.ss_size = sizeof small;
    _exit(sigaltstack(&stack, nullptr) == 0 && isGood() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_WITHOUTTILES_H
