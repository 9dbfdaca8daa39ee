// From an object file of AMD machine code to a code object that HIP loads, by lld in this process.
#ifndef CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H
#define CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H

#include "llvm/Support/Error.h"
#include <string>

namespace ctxc::gpu_lowering {

/// Links `object` by itself: a symbol that it lacks is an error, which `target` begins.
llvm::Expected<std::string> linkCodeObject(llvm::StringRef object, llvm::StringRef target);

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_AMD_LINKCODEOBJECT_H
