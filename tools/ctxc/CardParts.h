//===- CardParts.h - what a card has besides its numbers ------------------===//
#ifndef CTXC_TOOLS_CTXC_CARDPARTS_H
#define CTXC_TOOLS_CTXC_CARDPARTS_H

#include "ctxc/Report/CardReport.h"
#include "ctxc/Session/Model.h"

namespace ctxc::driver {

/// Likeliest answers side by side, to prompts of the request's texts; of conversations, to their
/// first questions.
llvm::Expected<std::vector<ExampleText>> exampleTexts(Model &model, const Adapter &adapter,
                                                      const EvaluateRequest &about,
                                                      bool areConversations);

/// The card's failures and its worst text as text.
llvm::Error addFailureTexts(Model &model, const EvaluateRequest &about, const Card &card,
                            CardSettings &settings);

/// Fits at lower ranks, and of half and a quarter of the texts, and the `own` fit as the last
/// point.
llvm::Expected<std::vector<CurvePoint>> curveOf(Model &model, const DistilRequest &request,
                                                const EvaluateRequest &about, CurvePoint own);

/// A fit that was judged, as a point of a curve.
CurvePoint pointOf(int64_t rank, int64_t tokens, const Card &card);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CARDPARTS_H
