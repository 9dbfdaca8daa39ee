//===- Sarif.h - a check as a SARIF 2.1.0 log ------------------------------===//
//
// For editors and CI: one run, every rule with its help, a result for each finding. In a file
// written by hand a result is at file, line and column; in a checkpoint at its configuration
// file and, as a logical location, the module's name.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_SARIF_H
#define CTXC_REPORT_SARIF_H

#include "ctxc/Report/CheckReport.h"

namespace ctxc {

/// The log of a check that ends with `exitCode`. Levels are error, warning, and note for a remark;
/// a result's properties have the verdict, the layers and the way out. Each cause of the verdict on
/// the whole model is a result; that nothing says that a program was read rightly is a notification
/// of the run.
llvm::json::Value sarifLog(llvm::ArrayRef<VerdictGroup> groups,
                           llvm::ArrayRef<GroupFinding> findings, int exitCode,
                           const CheckReportOptions &options = {});

/// The URI reference of a file: relative for a relative path, otherwise file:///…, with all other
/// characters escaped.
std::string fileUri(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_REPORT_SARIF_H
