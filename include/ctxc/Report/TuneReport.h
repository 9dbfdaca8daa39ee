//===- TuneReport.h - what was measured of this machine, as text and JSON --===//
#ifndef CTXC_REPORT_TUNEREPORT_H
#define CTXC_REPORT_TUNEREPORT_H

#include "ctxc/Runtime/Tune.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// `kept` says where the choice is kept for later runs; empty: nowhere.
void writeTuneText(const Tuning &tuning, llvm::StringRef kept, llvm::raw_ostream &os);
void writeTuneJson(const Tuning &tuning, llvm::raw_ostream &os);

} // namespace ctxc

#endif // CTXC_REPORT_TUNEREPORT_H
