// Functions of a library that is looked up at run time.
#ifndef CTXC_LIB_RUNTIME_GPU_LOOKUP_H
#define CTXC_LIB_RUNTIME_GPU_LOOKUP_H

#include <type_traits>

namespace ctxc {

/// Sets function pointers to what `find`, which is dlsym, gives for their names.
template <typename Find> struct LookUp {
  Find find;
  const char *lacking = nullptr; ///< the name of one that is not there

  template <typename Function> void operator()(Function *&function, const char *name) {
    function = reinterpret_cast<Function *>(find(name));
    if (!function)
      lacking = name;
  }
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_LOOKUP_H
