// Links an object file of AMD machine code to a code object that HIP loads, with lld in this
// process.
#ifndef CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H
#define CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H

#include "llvm/Support/Error.h"
#include <string>

namespace ctxc::gpu_lowering {

/// Links `object` alone. A missing symbol is an error, whose message begins with `target`.
llvm::Expected<std::string> linkCodeObject(llvm::StringRef object, llvm::StringRef target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H
