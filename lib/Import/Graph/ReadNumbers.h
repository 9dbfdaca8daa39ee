// PyTorch's own numbers in a .pt2 file (ctxc/Import/SourceNumbers.h).
#ifndef CTXC_IMPORT_READNUMBERS_H
#define CTXC_IMPORT_READNUMBERS_H

#include "Payloads.h"
#include "ctxc/Import/SourceNumbers.h"

namespace ctxc::pt2 {

/// The numbers in `archive`, or why it has none.
llvm::Expected<SourceNumbers> readNumbers(const Archive &archive);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READNUMBERS_H
