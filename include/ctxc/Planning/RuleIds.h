//===- RuleIds.h - the stable names of a check's findings ------------------===//
//
// Every finding names one of these; scripts, `-W` options and SARIF results refer to
// them, so an id is never renamed. What each one means is in ctxc/Report/Rules.h.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PLANNING_RULEIDS_H
#define CTXC_PLANNING_RULEIDS_H

#include "llvm/ADT/StringRef.h"

namespace ctxc::rules {

using Id = llvm::StringLiteral;

// Why a block is rejected.
inline constexpr Id BoundedOutput = "bounded-output";
inline constexpr Id ThinOutput = "thin-output";
inline constexpr Id FewVectors = "few-vectors";
inline constexpr Id OneSidedOutput = "one-sided-output";
inline constexpr Id NothingReachesOutput = "nothing-reaches-output";
inline constexpr Id Counterexample = "counterexample";

// Why it is undecided.
inline constexpr Id NoSolvableChain = "no-solvable-chain";
inline constexpr Id SeveralOutputs = "several-outputs";
inline constexpr Id NoSuchPlan = "no-such-plan";
inline constexpr Id UnconfirmedPlan = "unconfirmed-plan";
inline constexpr Id UnconfirmedRejection = "unconfirmed-rejection";
inline constexpr Id JointCapacity =
    "joint-capacity"; // one change cannot serve several tokens or runs
// Why a model is undecided although its layers are not.
inline constexpr Id ContextPastLayers = "context-past-layers";

// Warnings about a plan.
inline constexpr Id ConditionalObligation = "conditional-obligation";
inline constexpr Id FragilePlan = "fragile-plan";
inline constexpr Id OutputOnly = "output-only";

} // namespace ctxc::rules

#endif // CTXC_PLANNING_RULEIDS_H
