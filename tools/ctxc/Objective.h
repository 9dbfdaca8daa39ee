//===- Objective.h - what ctxc distil weighs against what -----------------===//
#ifndef CTXC_TOOLS_CTXC_OBJECTIVE_H
#define CTXC_TOOLS_CTXC_OBJECTIVE_H

#include "ContextTexts.h"
#include "ctxc/Report/CardReport.h"

namespace ctxc::driver {

enum class DistilObjective {
  Recover, ///< as much of the context's effect as can be
  Safe,    ///< as much as can be while unrelated text drifts little
};

llvm::Expected<DistilObjective> objectiveOf(const Arguments &arguments);
OptionSpec objectiveOption();

struct Fitted {
  Distilled made;
  std::vector<TradeOff> tried; ///< for Safe
  std::vector<EntriesTried> entriesTried = {};
};

/// Fits `request`, and leaves there what was fitted. For Safe, half of what is protected is taken
/// out of the fit to choose the protection by: the least of those tried with which the drift on
/// that half is at most a quarter of the context's own. `about` has the card's texts. Errors: as
/// Model::distil, and where no protection bounds the drift.
llvm::Expected<Fitted> fitFor(DistilObjective objective, Model &model, DistilRequest &request,
                              const EvaluateRequest &about);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_OBJECTIVE_H
