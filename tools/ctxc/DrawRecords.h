//===- DrawRecords.h - an experiment's plots and page ---------------------===//
#ifndef CTXC_TOOLS_CTXC_DRAWRECORDS_H
#define CTXC_TOOLS_CTXC_DRAWRECORDS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ctxc::driver {

/// Runs `python`, or else $CTXC_PYTHON, to draw the records in `directory`. If neither is given,
/// prints how they can be drawn. With `force`, files that ctxc did not write are replaced.
llvm::Error drawRecords(llvm::StringRef directory, llvm::StringRef python, bool force);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_DRAWRECORDS_H
