//===- RegisterPasses.h - the lowering as passes of ctxc-opt --------------===//
#ifndef CTXC_LOWERING_REGISTERPASSES_H
#define CTXC_LOWERING_REGISTERPASSES_H

namespace ctxc {

/// --ctxc-lower-to-linalg and --ctxc-lower-to-llvm.
void registerLoweringPasses();

} // namespace ctxc

#endif // CTXC_LOWERING_REGISTERPASSES_H
