//===- AttentionScores.h - what attention's softmax is taken of -----------===//
#ifndef CTXC_GRADIENT_ATTENTIONSCORES_H
#define CTXC_GRADIENT_ATTENTIONSCORES_H

#include "ctxc/Gradient/Tape.h"

namespace ctxc::gradient {

/// The scores of one attention for any keys, with the queries, windows and slopes that a tape knows
/// of its tokens.
class AttentionScores {
public:
  /// `tape` knows the op's operands, and must outlive the result. Errors: an attention that sees
  /// later tokens; sinks that are not stored in float32.
  static llvm::Expected<AttentionScores> make(xf::AttentionOp op, Tape &tape);

  /// For the queries of head `head` in the tape's rows [first, first + count), and keys (a row for
  /// each) at `positions`: s_j = scale (q · k_j + m position_j), behind the softcap; −∞ where a key
  /// is not seen. `capped` has what each score is multiplied by in the derivative of the cap.
  Rows of(int64_t first, int64_t count, int64_t head, const Rows &keys,
          llvm::ArrayRef<int32_t> positions, Rows *capped = nullptr) const;

  /// The queries of a head, times the op's scale.
  Rows queries(int64_t first, int64_t count, int64_t head) const;
  /// What the slope of head `head` adds to the score, before the softcap, of a key at `position`,
  /// for the query in row `row`.
  float slopeTerm(int64_t row, int64_t head, int64_t position) const;
  /// The first and the last position of which the query in row `row` sees keys.
  std::pair<int64_t, int64_t> seenBy(int64_t row) const;
  /// The scores of the heads' sinks; null: none.
  const float *sinks() const { return ofSinks; }
  /// The softcap; 0: none.
  float softcap() const { return cap; }

  int64_t heads, groups, width, valueWidth;

private:
  AttentionScores(xf::AttentionOp op, Tape &tape);

  mutable xf::AttentionOp op; // its accessors are not const
  Tape &tape;
  const float *ofSinks = nullptr;
  float scale, cap;
};

} // namespace ctxc::gradient

#endif // CTXC_GRADIENT_ATTENTIONSCORES_H
