// Texts as the sequences of a passage.
#ifndef CTXC_LIB_DISTIL_SEQUENCES_H
#define CTXC_LIB_DISTIL_SEQUENCES_H

#include "ctxc/Distil/Distil.h"
#include <memory>

namespace ctxc {

inline void tell(const ProgressCall &progress, int64_t done, int64_t all) {
  if (progress)
    progress(done, all);
}

/// What stands in front of texts: tokens; or some tokens of a text, with what a model that has read
/// it keeps of them; or virtual entries.
struct Front {
  Front() = default;
  Front(llvm::ArrayRef<int64_t> tokens) : tokens(tokens) {}
  Front(const std::vector<int64_t> &tokens) : tokens(tokens) {}
  Front(const PinnedTokens &pinned) : tokens(pinned.tokens), pinned(&pinned) {}
  explicit Front(const VirtualEntries &entries) : entries(&entries) {}
  /// The position of what follows.
  int64_t end() const { return entries ? entries->count() : pinned ? pinned->end : tokens.size(); }
  /// How many tokens or entries a text sees of it.
  int64_t size() const { return entries ? entries->count() : tokens.size(); }
  bool empty() const { return size() == 0; }

  llvm::ArrayRef<int64_t> tokens;
  const PinnedTokens *pinned = nullptr;
  const VirtualEntries *entries = nullptr;
};

/// A prefix, of which texts see all tokens or only some (Adapter::seen), or virtual entries.
class OwnedFront {
public:
  /// `adapter` must outlive the result.
  static llvm::Expected<OwnedFront> make(const SplitModel &model, const Adapter &adapter) {
    if (adapter.entries.empty())
      return make(model, adapter.prefix, adapter.seen);
    OwnedFront made(adapter.prefix);
    made.entries = &adapter.entries;
    return std::move(made);
  }
  /// `prefix` must outlive the result.
  static llvm::Expected<OwnedFront> make(const SplitModel &model, llvm::ArrayRef<int64_t> prefix,
                                         llvm::ArrayRef<int64_t> seen) {
    OwnedFront made(prefix);
    if (seen.empty())
      return std::move(made);
    auto pinned = Passage::pin(model.steps, model.weights, prefix, seen);
    if (!pinned)
      return pinned.takeError();
    made.pinned = std::make_unique<PinnedTokens>(std::move(*pinned));
    return std::move(made);
  }
  Front get() const { return entries ? Front(*entries) : pinned ? Front(*pinned) : Front(prefix); }

private:
  explicit OwnedFront(llvm::ArrayRef<int64_t> prefix) : prefix(prefix) {}
  llvm::ArrayRef<int64_t> prefix;
  std::unique_ptr<PinnedTokens> pinned;
  const VirtualEntries *entries = nullptr;
};

/// What stands before a text without the context.
inline const std::vector<int64_t> &plainFront(const DistilRequest &request) {
  return request.front ? *request.front : request.prefix;
}

/// Adds `front`, unless it is empty, and each of `texts` after it. Returns the number of the first
/// text.
inline size_t addAfter(std::vector<PassageSequence> &sequences, const Front &front,
                       llvm::ArrayRef<TextSequence> texts) {
  auto positions = [](int64_t from, int64_t count) {
    auto range = llvm::seq(from, from + count);
    return std::vector<int64_t>(range.begin(), range.end());
  };
  std::optional<size_t> after;
  if (!front.empty()) {
    after = sequences.size();
    PassageSequence sequence{front.tokens.vec(), positions(0, front.tokens.size())};
    if (front.pinned)
      sequence.positions = front.pinned->positions;
    sequence.pinned = front.pinned;
    sequence.entries = front.entries;
    sequences.push_back(std::move(sequence));
  }
  for (const TextSequence &text : texts)
    sequences.push_back({text.tokens, positions(front.end(), text.tokens.size()), after});
  return sequences.size() - texts.size();
}

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_SEQUENCES_H
