//===- MemoryNeed.h - what an experiment's models take of memory ----------===//
#ifndef CTXC_TOOLS_CTXC_MEMORYNEED_H
#define CTXC_TOOLS_CTXC_MEMORYNEED_H

#include "ctxc/Session/Model.h"

namespace ctxc::driver {

/// What an experiment's models will take of memory, in bytes.
struct MemoryNeed {
  struct Weights {
    std::string dtype;
    uint64_t bytes = 0;
    bool mapped = false; ///< read where the file stores them; else a converted copy
  };
  std::vector<Weights> weights;
  uint64_t materialized = 0; ///< copies of the patched parameters, of the widest dtype
  uint64_t kernels = 0;      ///< compiler and kernels
  uint64_t total() const;
};

/// Of one model at a time for each of `dtypes`; "" is the type that each weight is stored in.
llvm::Expected<MemoryNeed> memoryNeed(Model &model, llvm::ArrayRef<std::string> dtypes);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_MEMORYNEED_H
