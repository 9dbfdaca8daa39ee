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

struct EntriesRequest {
  std::vector<int64_t> context;    ///< with the tokens that the tokenizer puts in front
  std::vector<TextSequence> texts; ///< each directly follows the context
  int64_t count = 16;              ///< of the entries of each head; at most as many as the context
                                   ///< has tokens
  ProgressCall fitted;             ///< progress over the attentions; may be empty
};

/// `count` entries without numbers, of the shapes that the model's attentions have. Quick. Errors:
/// a layer keeps something else of a token than keys and values; positions are told both by
/// rotations and otherwise.
llvm::Expected<VirtualEntries> shapesOfEntries(const SplitModel &model, int64_t count);

/// Errors: those of shapesOfEntries; less memory than it needs; no context, no text, or no entry;
/// positions that the model does not have; numbers that are not finite.
llvm::Expected<VirtualEntries> fitEntries(SplitModel model, const EntriesRequest &request);

/// What so many entries, fitted to some of the texts, recover on the others.
struct EntriesTried {
  int64_t count = 0;
  double share = 0; ///< TokenGroup::share of all tokens
};

struct ChosenEntries {
  VirtualEntries entries;
  std::vector<EntriesTried> tried;
};

/// Fits 8, 16, 32 and 64 entries, and of a long context up to one for twenty tokens, to four fifths
/// of the texts, and chooses the least number that recovers 95 % of what the best one recovers on
/// the other texts, where the plain model has `front` in the context's place. None is tried behind
/// one that recovers 95 % of everything, or is as many as the context has tokens. Then all texts
/// are fitted with that number; `request.count` is not read. Errors: those of fitEntries and of
/// evaluate.
llvm::Expected<ChosenEntries> chooseEntries(SplitModel model, const EntriesRequest &request,
                                            llvm::ArrayRef<int64_t> front);

} // namespace ctxc

#endif // CTXC_DISTIL_ENTRIES_H
