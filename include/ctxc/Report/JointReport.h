//===- JointReport.h - what one patch for all tokens of a text is, and gives ===//
#ifndef CTXC_REPORT_JOINTREPORT_H
#define CTXC_REPORT_JOINTREPORT_H

#include "ctxc/Distil/Joint.h"
#include "ctxc/Report/VerifyReport.h"

namespace ctxc {

/// The site that changes most, relative to its matrix; there is one.
const JointSite &largestChange(const JointPatch &patch);
/// How many of the site's first directions have half of the square of its change.
size_t directionsOfHalf(const JointSite &site);

/// What a patch needs of its tokens, each with what was found: room for them, independent states,
/// no collision, and the error that is predicted of a replay in float32. `inFront`: the tokens
/// that stay as they are.
std::string jointObligationsText(const JointPatch &patch, int64_t inFront);

/// A line for each tenth of the layers, and for the last one.
std::string jointSitesText(const JointPatch &patch);

/// How the patched model reads the texts, beside the model without the patch.
std::string jointCheckText(const JointCheck &check, int64_t generated);

/// In the layer that changes most: of what is written for each token, the part in each of the first
/// directions. `inFront`: the tokens that stay as they are.
std::string jointNeedsText(const JointVerification &found, int64_t inFront, const TokenName &name);

/// The matrices, with their whole spectra, and of each token the parts in the first `directions`;
/// the numbers of a check.
llvm::json::Array jointSitesJson(const JointPatch &patch, size_t directions = 0);
llvm::json::Object jointCheckJson(const JointCheck &check);

/// Whether every token is the full run's, while the patch grew and when the final weights read the
/// text again.
bool isVerified(const JointVerification &result);

/// The end of a report that VerifyText began, and the whole as JSON.
void writeJointEnd(llvm::raw_ostream &os, const JointVerification &result,
                   const VerifySettings &settings, const SetupTimes &setup, llvm::StringRef text);
llvm::json::Value jointJson(const JointVerification &result, const VerifySettings &settings,
                            const SetupTimes &setup, const TokenName &name, size_t directions = 0);

} // namespace ctxc

#endif // CTXC_REPORT_JOINTREPORT_H
