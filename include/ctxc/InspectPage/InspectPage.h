//===- InspectPage.h - an inspection as an HTML page -----------------------===//
//
// One self-contained HTML file: pictures first (inline SVG, which need no script), numbers on hover
// and on keyboard focus, and the tables of the pictures. It loads nothing: its content security
// policy allows its own style and its one script, by digest. Everything that comes from the model
// or the user is escaped: token texts may be anything.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_INSPECTPAGE_INSPECTPAGE_H
#define CTXC_INSPECTPAGE_INSPECTPAGE_H

#include "ctxc/Report/InspectReport.h"
#include "ctxc/Report/JointReport.h"

namespace ctxc {

void writeInspectPage(llvm::raw_ostream &os, const Inspection &inspection,
                      const InspectSettings &settings, const TokenName &name);

/// One patch for all tokens that were generated behind a context: how many directions each layer
/// needs, and which tokens need which.
void writeJointPage(llvm::raw_ostream &os, const JointVerification &found,
                    const VerifySettings &settings, const TokenName &name);

} // namespace ctxc

#endif // CTXC_INSPECTPAGE_INSPECTPAGE_H
