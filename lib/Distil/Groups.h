// Texts of a step of gradient descent, and how such groups are put together.
#ifndef CTXC_LIB_DISTIL_GROUPS_H
#define CTXC_LIB_DISTIL_GROUPS_H

#include "Predictions.h"
#include "Sequences.h"
#include "ctxc/Gradient/Tape.h"

namespace ctxc {

/// Texts that go through the model together, and what their tokens should predict.
struct Group {
  std::vector<PassageSequence> sequences;
  gradient::TapeTokens tokens;
  Predictions truth;
  std::vector<double> weights; ///< of each row
};

/// The sequences' tokens, as a tape takes them.
inline gradient::TapeTokens tokensOf(llvm::ArrayRef<PassageSequence> sequences) {
  gradient::TapeTokens tokens;
  int64_t at = 0;
  for (const PassageSequence &sequence : sequences) {
    tokens.ids.insert(tokens.ids.end(), sequence.tokens.begin(), sequence.tokens.end());
    tokens.positions.insert(tokens.positions.end(), sequence.positions.begin(),
                            sequence.positions.end());
    tokens.sequences.push_back({at, int64_t(sequence.tokens.size()), sequence.after});
    at += sequence.tokens.size();
  }
  return tokens;
}

/// Adds the texts of `more`, so that all go through the model together. Where they follow a front,
/// it is the first sequence of both, and the same.
inline void append(Group &group, const Group &more, bool hasFront) {
  const size_t dropped = hasFront ? more.sequences.front().tokens.size() : 0;
  const size_t width = more.truth.tokens.size() / more.tokens.ids.size();
  const int64_t before = group.tokens.ids.size() - dropped;
  auto add = [](auto &to, const auto &from, size_t first) {
    llvm::append_range(to, llvm::ArrayRef(from).drop_front(first));
  };
  add(group.sequences, more.sequences, hasFront);
  for (gradient::TapeTokens::Sequence sequence :
       llvm::ArrayRef(more.tokens.sequences).drop_front(hasFront)) {
    sequence.first += before;
    group.tokens.sequences.push_back(sequence);
  }
  add(group.tokens.ids, more.tokens.ids, dropped);
  add(group.tokens.positions, more.tokens.positions, dropped);
  add(group.truth.tokens, more.truth.tokens, dropped * width);
  add(group.truth.probabilities, more.truth.probabilities, dropped * width);
  add(group.weights, more.weights, dropped);
}

using Groups = std::vector<Group>;

/// Puts `own` between `groups`, by turns and in the ratio of their numbers.
inline void takeByTurns(Groups &groups, Groups own) {
  Groups merged;
  size_t taken = 0;
  auto take = [&] { merged.push_back(std::move(groups[taken++])); };
  for (size_t i = 0; i < own.size(); ++i) {
    while (taken * own.size() < i * groups.size())
      take();
    merged.push_back(std::move(own[i]));
  }
  while (taken < groups.size())
    take();
  groups = std::move(merged);
}

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_GROUPS_H
