//===- Joint.h - one patch that is exact for all tokens of some texts -----===//
//
// A patch of rank 1 is exact for one token. One change ΔW of rank k is exact for k tokens at once:
// with what a matrix reads for each of them in the reduced run as the columns of Z, and with what
// its product lacks there as those of D, ΔW Z = D has a solution if the columns of Z are
// independent, and ΔW = D Z⁺ is the least. docs/joint.md has the theorem and what was measured.
//
// ΔW = L Qᵀ with Z = Q R and L = D R⁻¹: since R is triangular, the first j columns of L and Q are
// the least change for the first j tokens. So one more token adds one rank, and changes nothing of
// what the others have: a patch can grow while a model generates.
//
// Factors stay beside the weights, which may have any type.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DISTIL_JOINT_H
#define CTXC_DISTIL_JOINT_H

#include "ctxc/Distil/Distil.h"
#include "ctxc/Verify/Verify.h"

namespace ctxc {

struct JointRequest {
  std::vector<int64_t> context; ///< with the tokens that the tokenizer puts in front
  /// What stands before every text without the context. The patch leaves these tokens as they are.
  std::vector<int64_t> prefix;
  /// The positions that the prefix's tokens have in the context, ascending: then they and the texts
  /// stand where they stand with the context. None: the texts directly follow the prefix.
  std::optional<std::vector<int64_t>> kept;
  std::vector<TextSequence> texts; ///< each directly follows the context
  std::vector<int64_t> stops;      ///< tokens after which verifyJointly generates none
  /// Whether verifyJointly, of more tokens than one patch can be exact for, goes on with the change
  /// for the first ones.
  bool goesOn = false;
  /// Strengths λ₀ of a ridge penalty, each above 0: patchJointly also gives the changes that come
  /// nearest to what the exact ones write, with λ ‖ΔW‖² beside the squares; λ = λ₀ ‖S‖²_F / tr S,
  /// where S is the texts' Gram matrix of what the matrix reads, as in distil.
  std::vector<double> ridges;
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
  /// What the roundings of another program in float32 do through ΔW: the predicted error of the
  /// matrix's product, of the token where it is largest, relative to that product.
  double replayError = 0;
  /// The tokens of which what it reads depends on what it reads for others: in their place, the
  /// next layer brings back the full run's residual stream.
  int64_t left = 0;
  std::vector<double> spectrum; ///< the singular values of ΔW, descending
  /// Of each token, those in front first: which part of the square of what ΔW writes for it is in
  /// each singular direction, as many as `spectrum` has; all 0 where nothing is written.
  std::vector<std::vector<double>> shares;
};

struct JointPatch {
  Adapter adapter; ///< its matrices' ranks are in the tokens' order
  std::vector<JointSite> sites;
  int64_t tokens = 0;
  std::vector<Adapter> ridged; ///< for each of the request's ridges; of the same ranks
};

/// A matrix of a layer by which a joint patch can be exact.
struct JointMatrix {
  std::string parameter; ///< by its block's name
  int64_t tokens = 0;    ///< for how many one change of it can be exact: how much it reads
};

/// By the layer's structure alone, each sufficient by itself: the matrix through whose product the
/// whole effect of the context passes first, in most models attention's output projection, which
/// needs no division and no scale; and the one through which it passes last, such as the MLP's,
/// unless a norm follows, or what it reads knows no other token. None where no matrix is on the way
/// of all that the context changes, or where that is a mixture's experts. Quick.
std::vector<JointMatrix> findJointMatrices(const LayerVerdict &layer);

/// For how many tokens, together with those of the prefix, one patch of the model can be exact: the
/// least of what the widest matrix of each layer reads; 0 if there is none. Quick.
int64_t jointCapacity(const SplitModel &model);

/// In each layer that one of its matrices is changed which replays best, by JointSite::replayError.
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

  /// Every likeliest token is the full run's, and no logit differs by more than a hundredth of what
  /// the context changes: what rounding leaves is far below it, and what is wrongly patched is far
  /// above.
  bool verified() const { return difference <= 0.01 * control && agree == tokens; }
};

/// Errors: a model without a head; a matrix of the adapter that is no site; logits that are not
/// finite; those of a passage.
llvm::Expected<JointCheck> checkJointly(SplitModel model, const Adapter &adapter,
                                        const JointRequest &request);

/// One patch that grows with a text, while both runs read it token by token. What the patched run
/// keeps of earlier tokens stays valid.
class JointRun {
public:
  /// Behind the request's context, for at most `most` tokens of a text. `comparesControl`: a third
  /// run, with neither the context nor the change, reads the text too. `model` must outlive the
  /// result. Errors: those of patchJointly that sizes show; a model without a head.
  static llvm::Expected<JointRun> start(SplitModel model, const JointRequest &request, int64_t most,
                                        bool comparesControl);
  JointRun(JointRun &&) noexcept;
  JointRun &operator=(JointRun &&) noexcept;
  ~JointRun();

  /// Both runs read the text's next tokens, after the patch has grown by them; what they say of the
  /// one that follows. Errors: those of patchJointly.
  llvm::Expected<VerifyStep> read(llvm::ArrayRef<int64_t> tokens);

  /// The text so far; how many of its tokens the patch is exact for, and why not for the next one.
  llvm::ArrayRef<int64_t> text() const;
  int64_t exact() const;
  std::string whyInexact() const;
  /// What the last tokens have added to the change of each matrix.
  std::vector<MatrixChange> added() const;
  llvm::Expected<JointPatch> patch() const;
  const RunTimes &times() const;

private:
  class State;
  explicit JointRun(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// A patch that has grown while the model generated, and what was found.
struct JointVerification {
  std::vector<VerifyStep> steps; ///< while it grew: one for each token that was generated
  int64_t exact = 0; ///< of these, the first for which it grew: all, unless the request goes on
  std::string whyInexact; ///< of the next one; empty if there is none
  bool ended = false;     ///< the last of them is one of the request's `stops`
  /// Of the whole text by the final weights alone, from its first token, as far as they are exact.
  JointCheck reread;
  JointPatch patch;
  RunTimes times;
};

/// Generates up to `count` tokens behind the request's one text, the likeliest ones of the full
/// run. Before each, the patch grows by the token before it; what the patched run keeps of earlier
/// tokens stays valid. Then the final weights read the whole text without the context. `observe`
/// sees each step. Errors: those of patchJointly and checkJointly, before anything is computed
/// where `count` tokens are more than the capacity.
llvm::Expected<JointVerification> verifyJointly(SplitModel model, const JointRequest &request,
                                                int64_t count, StepObserver observe);

} // namespace ctxc

#endif // CTXC_DISTIL_JOINT_H
