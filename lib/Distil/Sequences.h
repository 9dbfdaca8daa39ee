// Texts as the sequences of a passage.
#ifndef CTXC_LIB_DISTIL_SEQUENCES_H
#define CTXC_LIB_DISTIL_SEQUENCES_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

inline void tell(const ProgressCall &progress, int64_t done, int64_t all) {
  if (progress)
    progress(done, all);
}

/// Adds `front`, unless it is empty, and each of `texts` after it. Returns the number of the first
/// text.
inline size_t addAfter(std::vector<PassageSequence> &sequences, llvm::ArrayRef<int64_t> front,
                       llvm::ArrayRef<TextSequence> texts) {
  auto positions = [](int64_t from, int64_t count) {
    return llvm::to_vector_of<int64_t>(llvm::seq(from, from + count));
  };
  std::optional<size_t> after;
  if (!front.empty()) {
    auto at = positions(0, front.size());
    after = sequences.size();
    sequences.push_back({front.vec(), {at.begin(), at.end()}, std::nullopt});
  }
  for (const TextSequence &text : texts) {
    auto at = positions(front.size(), text.tokens.size());
    sequences.push_back({text.tokens, {at.begin(), at.end()}, after});
  }
  return sequences.size() - texts.size();
}

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_SEQUENCES_H
