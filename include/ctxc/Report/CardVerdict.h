//===- CardVerdict.h - whether an adapter should be used ------------------===//
#ifndef CTXC_REPORT_CARDVERDICT_H
#define CTXC_REPORT_CARDVERDICT_H

#include "ctxc/Report/CardReport.h"

namespace ctxc {

/// What a card says of its adapter.
struct CardVerdict {
  enum class Kind {
    Good,
    Low,    ///< it recovers little, or so few texts judged that this may be chance
    Harmful ///< the model is better off without it, or with the kept tokens alone
  } kind = Kind::Good;
  std::string found;               ///< empty where it is good
  std::vector<std::string> causes; ///< what may have led to it, and what to do
  std::string text() const;        ///< both, the causes behind a colon
};

/// `fittedShare` is what is recovered of the texts that were fitted, where it was measured;
/// `causes` are further ones that the caller knows.
CardVerdict verdictOn(const Card &card, const CardSettings &settings,
                      std::optional<double> fittedShare = std::nullopt,
                      llvm::ArrayRef<std::string> causes = {});

} // namespace ctxc

#endif // CTXC_REPORT_CARDVERDICT_H
