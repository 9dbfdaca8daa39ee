//===- InspectReport.h - an inspection, as text and as JSON ----------------===//
#ifndef CTXC_REPORT_INSPECTREPORT_H
#define CTXC_REPORT_INSPECTREPORT_H

#include "ctxc/Inspect/Inspect.h"
#include "ctxc/Report/VerifyReport.h"

namespace ctxc {

/// What a report says about an inspection besides its findings.
struct InspectSettings {
  VerifySettings run; ///< the model and how it was run; `request.kept` and the like as inspected
  SetupTimes times;
  Grain grain = Grain::Token;
  bool hasNames = true; ///< tokens are named by a tokenizer, and not by their ids
};

/// Writes for the terminal, at most 100 columns: predictions of the three runs, layers, parameters,
/// tokens and where the patch comes from, with bars that show sizes.
void printInspection(llvm::raw_ostream &os, const Inspection &inspection,
                     const InspectSettings &settings, const TokenName &name);

/// All findings. Numbers that are not finite, and cosines with a zero vector, are null.
llvm::json::Value inspectionJson(const Inspection &inspection, const InspectSettings &settings,
                                 const TokenName &name);

/// The text of the tokens at `positions`; their ids where they have no names.
std::string textOf(const Inspection &inspection, const InspectSettings &settings,
                   const TokenName &name, llvm::ArrayRef<int64_t> positions);
/// The same without spaces around it.
std::string readableText(const Inspection &inspection, const InspectSettings &settings,
                         const TokenName &name, llvm::ArrayRef<int64_t> positions);

/// The fewest layers, with the largest squared norms of a patch's matrices (vectors), that have
/// half of the total together, at most three; and their share. Empty if all norms are zero.
struct MostOfPatch {
  std::vector<int64_t> layers;
  double share = 0;
};
MostOfPatch mostOfPatch(llvm::ArrayRef<PatchNorm> layers, double PatchNorm::*norm);

} // namespace ctxc

#endif // CTXC_REPORT_INSPECTREPORT_H
