//===- Joint.h - one patch that is exact for all tokens of some texts -----===//
//
// A patch of rank 1 is exact for one token. One change ΔW of rank k is exact for k tokens at once:
// with what a matrix reads for each of them in the reduced run as the columns of Z, and with what
// its product lacks there as those of D, ΔW Z = D has a solution if the columns of Z are
// independent, and ΔW = D Z⁺ is the least. docs/joint.md has the theorem and what was measured.
//
// ΔW = L Qᵀ with Z = Q R and L = D R⁻¹: since R is triangular, the first j columns of L and Q are
// the least change for the first j tokens. So one more token adds one rank, and changes nothing of
// what the others have.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_JOINT_H
#define CTXC_DISTIL_JOINT_H

#include "ctxc/Distil/Distil.h"

namespace ctxc {

struct JointRequest {
  std::vector<int64_t> context; ///< with the tokens that the tokenizer puts in front
  /// What stands before every text without the context. The patch leaves these tokens as they are.
  std::vector<int64_t> prefix;
  std::vector<TextSequence> texts; ///< each directly follows the context
  /// A token, as messages name it; none: by its id.
  std::function<std::string(int64_t token)> nameOf;
  ProgressCall fitted; ///< progress over the matrices; may be empty
};

/// The change of one matrix.
struct JointSite {
  std::string matrix;
  int64_t layer = 0;
  int64_t capacity = 0;    ///< for how many tokens one change of it can be exact: how much it reads
  double change = 0;       ///< ‖ΔW‖ / ‖W‖, by Frobenius' norm
  double independence = 1; ///< the least distance of what is read for a token from the span of what
                           ///< is read for those before it, relative to its length
  std::vector<double> spectrum; ///< the singular values of ΔW, descending
};

struct JointPatch {
  Adapter adapter; ///< its matrices' ranks are in the tokens' order
  std::vector<JointSite> sites;
  int64_t tokens = 0;
};

/// The matrix of a layer that a joint patch changes.
struct JointMatrix {
  std::string parameter; ///< by its block's name
  int64_t tokens = 0;    ///< for how many one change of it can be exact: how much it reads
};

/// By the layer's structure alone; none where no matrix is on the way of all that the context
/// changes, or where that is a mixture's experts. Quick.
std::optional<JointMatrix> findJointMatrix(const LayerVerdict &layer);

/// For how many tokens, together with those of the prefix, one patch of the model can be exact: the
/// least of what its sites read; 0 if some layer has none. Quick.
int64_t jointCapacity(const SplitModel &model);

/// In each layer the matrix is changed through whose product the whole effect of the context passes
/// first: in most models attention's output projection, which needs no division and no scale.
/// Errors: no site; a mixture's experts as one; no context, no text; more tokens than the capacity;
/// two tokens for which the matrix reads the same and should write something else, named; less
/// memory than it needs; numbers that are not finite.
llvm::Expected<JointPatch> patchJointly(SplitModel model, const JointRequest &request);

/// How the patched model, which sees neither the context nor anything of the full run, reads the
/// texts.
struct JointCheck {
  int64_t tokens = 0;
  double difference = 0, control = 0; ///< largest difference of a logit from the full run's: with
                                      ///< the patch; without it and the context
  int64_t agree = 0,
          agreeControl = 0; ///< tokens at which the likeliest next token is the full run's
  size_t text = 0;          ///< where the largest difference is
  int64_t at = 0;
};

/// Errors: a model without a head; logits that are not finite; those of a passage.
llvm::Expected<JointCheck> checkJointly(SplitModel model, const Adapter &adapter,
                                        const JointRequest &request);

} // namespace ctxc

#endif // CTXC_DISTIL_JOINT_H
