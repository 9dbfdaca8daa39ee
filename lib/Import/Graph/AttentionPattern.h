//===- AttentionPattern.h - attention that a model spells out --------------===//
#ifndef CTXC_IMPORT_ATTENTIONPATTERN_H
#define CTXC_IMPORT_ATTENTIONPATTERN_H

#include "Mask.h"

namespace ctxc::pt2 {

/// What makes a mixed value, from its end to its beginning.
struct AttentionPattern {
  mlir::Value query, key, value; ///< of the program; each of one token
  double scale = 1;
  std::optional<double> cap;
  Steps seen = Steps(1); ///< 1 where a token sees another
  graph::StoredOp sinks;
  /// What is added to the products before the scale; without heads where nothing is.
  Slopes slopes;
  /// What is added behind the scale for each key, times `keyFactor`: for each head of keys, or for
  /// all of them. Null where nothing is.
  mlir::Value ofKeys;
  double keyFactor = 0;
};

/// The products of queries and keys, the mask, the softmax and the sum of values that make `mixed`;
/// none where they do not, and then `obstacle` names the op that is another.
std::optional<AttentionPattern> matchAttention(mlir::Value mixed, const TokenAxes &axes,
                                               const Numbers &numbers, std::string &obstacle);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_ATTENTIONPATTERN_H
