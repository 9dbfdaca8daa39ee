// The source's own numbers in a program's file (ctxc/Import/SourceNumbers.h).
#ifndef CTXC_IMPORT_READNUMBERS_H
#define CTXC_IMPORT_READNUMBERS_H

#include "ctxc/Checkpoint/JsonTree.h"
#include "ctxc/Import/SourceNumbers.h"
#include "llvm/Support/Error.h"

namespace ctxc::pt2 {

/// The numbers that `root` says, or why there are none; messages begin with `where`.
llvm::Expected<SourceNumbers> readNumbers(JsonView root, const std::string &where);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READNUMBERS_H
