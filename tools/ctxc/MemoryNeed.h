//===- MemoryNeed.h - whether an experiment fits into memory --------------===//
#ifndef CTXC_TOOLS_CTXC_MEMORYNEED_H
#define CTXC_TOOLS_CTXC_MEMORYNEED_H

#include "ctxc/Session/Model.h"

namespace ctxc::driver {

/// The bytes of this machine's physical memory.
uint64_t machineMemory();

/// Prints to stderr how much memory an experiment needs that opens one model at a time, for each of
/// `dtypes` ("" is the type in which each weight is stored). Fails where this is more than
/// `available` bytes.
llvm::Error checkMemory(Model &model, llvm::ArrayRef<std::string> dtypes, uint64_t available);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_MEMORYNEED_H
