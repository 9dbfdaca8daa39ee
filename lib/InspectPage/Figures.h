// The pictures of the page, each a <section> with its caption, scale and table.
#ifndef CTXC_LIB_INSPECTPAGE_FIGURES_H
#define CTXC_LIB_INSPECTPAGE_FIGURES_H

#include "ctxc/Page/Html.h"

namespace ctxc::page {

/// What all pictures show.
struct Subject {
  const Inspection &inspection;
  const InspectSettings &settings;
  const TokenName &name;

  const SubjectInspection &subject() const { return inspection.subject; }
  /// Whether the patch changes matrices, and vectors.
  bool has(bool matrices) const;
};

/// The context as a text; the more the patch changes without a part, the darker it is.
void writePrompt(llvm::raw_ostream &os, const Subject &of);
/// What the three runs predict, side by side.
void writeRuns(llvm::raw_ostream &os, const Subject &of);
/// Update norms, layers by tokens.
void writeLayersByTokens(llvm::raw_ostream &os, const Subject &of);
/// Update norms of the subject's patch, parameters by layers.
void writeParameters(llvm::raw_ostream &os, const Subject &of);
/// The tokens nearest to what each layer writes.
void writeNearest(llvm::raw_ostream &os, const Subject &of);
/// Cosines between the layers' writes.
void writeLayerCosines(llvm::raw_ostream &os, const Subject &of);
/// Cosines of each token's patch with the one before.
void writeTokenCosines(llvm::raw_ostream &os, const Subject &of);

} // namespace ctxc::page

#endif // CTXC_LIB_INSPECTPAGE_FIGURES_H
