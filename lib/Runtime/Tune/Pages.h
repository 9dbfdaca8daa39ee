// Memory on pages of a given kind, for measurements.
#ifndef CTXC_LIB_RUNTIME_TUNE_PAGES_H
#define CTXC_LIB_RUNTIME_TUNE_PAGES_H

#include <cstddef>

namespace ctxc {

class Pages {
public:
  /// `bytes` of memory whose bytes are all `value`. The system may refuse huge pages, and then
  /// gives ordinary ones.
  Pages(std::size_t bytes, bool huge, unsigned char value);
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  /// Null if there is no memory.
  char *data() const { return memory; }

private:
  char *memory;
  std::size_t size;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_TUNE_PAGES_H
