//===- MemoryNeed.h - whether an experiment fits into memory --------------===//
#ifndef CTXC_TOOLS_CTXC_MEMORYNEED_H
#define CTXC_TOOLS_CTXC_MEMORYNEED_H

#include "ctxc/Session/Model.h"

namespace ctxc::driver {

/// The bytes of this machine's physical memory.
uint64_t machineMemory();

/// Prints to stderr what an experiment with one model at a time for each of `dtypes` takes of
/// memory ("" is the type that each weight is stored in). Fails where that is more than `available`
/// bytes.
llvm::Error checkMemory(Model &model, llvm::ArrayRef<std::string> dtypes, uint64_t available);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_MEMORYNEED_H
