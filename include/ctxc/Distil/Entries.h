//===- Entries.h - virtual entries of the KV cache in place of a context --===//
//
// A context reaches a later token only through what attention reads of its keys and values. Virtual
// entries are a few keys and values for each attention and head that are read like all of the
// context's: fitted in closed form, one attention after the other, to what the queries of some
// texts read. docs/distil-method.md has the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_ENTRIES_H
#define CTXC_DISTIL_ENTRIES_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

/// `count` entries without numbers, of the shapes that the model's attentions have. Quick. Errors:
/// a layer keeps something else of a token than keys and values; positions are told both by
/// rotations and otherwise.
llvm::Expected<VirtualEntries> shapesOfEntries(const SplitModel &model, int64_t count);

/// The closed form: `request.fit.entries` entries for the request's context, or as many as it has
/// tokens, if these are fewer, fitted to its texts. The progress is over the attentions. Errors:
/// those of shapesOfEntries; less memory than it needs; no context or no text; positions that the
/// model does not have; numbers that are not finite.
llvm::Expected<VirtualEntries> fitEntries(SplitModel model, const DistilRequest &request);

/// What so many entries, fitted to some of the texts, recover on the others.
struct EntriesTried {
  int64_t count = 0;
  double share = 0; ///< TokenGroup::share of all tokens
};

struct ChosenEntries {
  Distilled made;
  std::vector<EntriesTried> tried;
};

/// Fits 8, 16, 32 and 64 entries, and of a long context up to one for twenty tokens, to four fifths
/// of the texts, and chooses the least number that recovers 95 % of what the best one recovers on
/// the other texts. None is tried behind one that recovers 95 % of everything, or is as many as the
/// context has tokens. Then the request is distilled with that number in the place of
/// `fit.entries`. Errors: those of distil and of evaluate.
llvm::Expected<ChosenEntries> chooseEntries(SplitModel model, const DistilRequest &request);

} // namespace ctxc

#endif // CTXC_DISTIL_ENTRIES_H
