// The contents of a check report, before they become text or JSON.
#ifndef CTXC_LIB_REPORT_CHECKROWS_H
#define CTXC_LIB_REPORT_CHECKROWS_H

#include "ctxc/Distil/Joint.h"

namespace ctxc {

/// A patched parameter.
struct PatchRow {
  std::string parameter, change, lemma;
};

/// A condition on a parameter's data, and where it can fail.
struct ObligationRow {
  std::string parameter, condition, holds, lemma;
};

struct CheckRows {
  std::vector<PatchRow> input, output;
  std::vector<ObligationRow> obligations;
};

CheckRows checkRows(const Verdict &verdict);

/// One of the plans that a block has.
struct PlanRow {
  std::vector<std::string> parameters; ///< patched, in block order
  VerdictKind kind;
  PlanCost cost;
  bool chosen; ///< the verdict's own
};

std::vector<PlanRow> planRows(const VerdictGroup &group);

/// The matrices of the group's layers of which one change serves several tokens, each by itself.
std::vector<JointMatrix> jointMatricesOf(const VerdictGroup &group);

/// "3 patches, 4352 numbers; divides by 3 vectors"
std::string costText(const PlanRow &row);

} // namespace ctxc

#endif // CTXC_LIB_REPORT_CHECKROWS_H
