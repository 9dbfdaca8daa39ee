//===- CheckPage.h - verdicts on a model, as a page ------------------------===//
//
// One HTML file that needs no network and no script. It has for each group of layers the verdict, a
// drawing of the block (Graph.h), the patched parameters with the lemma that each rests on, the
// conditions on the data, and every plan with its cost. Above these stand the verdict on the whole
// model, where it has causes of its own, and why an exported program was not compared.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_CHECKPAGE_H
#define CTXC_REPORT_CHECKPAGE_H

#include "ctxc/Report/CheckReport.h"

namespace ctxc {

/// Writes the page of `model`'s verdicts to `path`.
/// Errors: no `dot` in PATH, its failure, a file that cannot be written.
llvm::Error writeCheckPage(llvm::StringRef path, llvm::StringRef model,
                           llvm::ArrayRef<VerdictGroup> groups,
                           const CheckReportOptions &options = {});

} // namespace ctxc

#endif // CTXC_REPORT_CHECKPAGE_H
