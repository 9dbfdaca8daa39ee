//===- TuneReport.h - the measurements of `ctxc tune`, as text and JSON ----===//
#ifndef CTXC_REPORT_TUNEREPORT_H
#define CTXC_REPORT_TUNEREPORT_H

#include "ctxc/Runtime/Tune.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// `kept` is the directory in which the choice is stored for later runs; empty: it is not stored.
void writeTuneText(const Tuning &tuning, llvm::StringRef kept, llvm::raw_ostream &os);
void writeTuneJson(const Tuning &tuning, llvm::raw_ostream &os);

} // namespace ctxc

#endif // CTXC_REPORT_TUNEREPORT_H
