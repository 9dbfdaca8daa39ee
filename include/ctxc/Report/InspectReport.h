//===- InspectReport.h - an inspection, as text and as JSON ----------------===//
#ifndef CTXC_REPORT_INSPECTREPORT_H
#define CTXC_REPORT_INSPECTREPORT_H

#include "ctxc/Inspect/Inspect.h"
#include "ctxc/Report/VerifyReport.h"

namespace ctxc {

/// What is told of an inspection beside what it found.
struct InspectSettings {
  VerifySettings run; ///< the model and how it was run; `request.kept` and the like as inspected
  SetupTimes times;
  Grain grain = Grain::Token;
  bool hasNames = true; ///< tokens are named by a tokenizer, and not by their ids
};

/// For the terminal, at most 100 columns: predictions of the three runs, layers, parameters, tokens
/// and what the patch came from, each with the largest marked by a bar.
void printInspection(llvm::raw_ostream &os, const Inspection &inspection,
                     const InspectSettings &settings, const TokenName &name);

/// Everything that was found. Numbers that are not finite, and cosines of what is zero, are null.
llvm::json::Value inspectionJson(const Inspection &inspection, const InspectSettings &settings,
                                 const TokenName &name);

/// The text of some tokens, as a reader would have it: pieces with their blanks (▁, Ġ) and line
/// breaks (Ċ, <0x0A>) as such.
std::string readableText(llvm::ArrayRef<std::string> pieces);

/// The layers that take most of the squared norm of the matrices (vectors) of a patch: until they
/// have half of it together, at most three; and the share that they have. Empty where all are zero.
struct MostOfPatch {
  std::vector<int64_t> layers;
  double share = 0;
};
MostOfPatch mostOfPatch(llvm::ArrayRef<PatchNorm> layers, double PatchNorm::*norm);

} // namespace ctxc

#endif // CTXC_REPORT_INSPECTREPORT_H
