//===- UpdateValues.h - the updates as the values of a pass's option -------===//
#ifndef CTXC_DIALECTS_PATCH_UPDATEVALUES_H
#define CTXC_DIALECTS_PATCH_UPDATEVALUES_H

#include "llvm/Support/CommandLine.h"

namespace ctxc::patch {

llvm::cl::ValuesClass updateValues();

} // namespace ctxc::patch

#endif // CTXC_DIALECTS_PATCH_UPDATEVALUES_H
