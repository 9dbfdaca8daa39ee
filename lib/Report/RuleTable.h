// The parts of the table of rules, each in a file of its own.
#ifndef CTXC_LIB_REPORT_RULETABLE_H
#define CTXC_LIB_REPORT_RULETABLE_H

#include "ctxc/Report/Rules.h"

namespace ctxc {

llvm::ArrayRef<Rule> theoremRules();
llvm::ArrayRef<Rule> lemmaRules();
llvm::ArrayRef<Rule> extensionRules();
llvm::ArrayRef<Rule> rejectionRules();
llvm::ArrayRef<Rule> planRules(); ///< undecided, warnings

} // namespace ctxc

#endif // CTXC_LIB_REPORT_RULETABLE_H
