// The full and the reduced run of some tokens, side by side, and the changes that make the second
// one the first.
#ifndef CTXC_LIB_DISTIL_JOINTRUNS_H
#define CTXC_LIB_DISTIL_JOINTRUNS_H

#include "JointFit.h"
#include "ctxc/Distil/Joint.h"
#include <map>

namespace ctxc {

/// The changes of some sites' matrices, as factors beside weights of any type.
struct JointChanges {
  /// Errors: a matrix that is no site of `split`, or of another shape; a changed vector.
  static llvm::Expected<JointChanges> of(const SplitProgram &split, const Adapter &adapter);

  /// Takes `passage` through the steps before `end`, with what the changes add to the products.
  llvm::Error runUpTo(const SplitProgram &split, Passage &passage, size_t end) const;

  std::map<size_t, JointFit> fits; ///< by the sites' numbers
};

/// Tokens that both runs read at once.
struct JointPassages {
  Passage &full, &reduced;
  int64_t taught = 0;             ///< the first row of the texts in the full run
  int64_t learned = 0;            ///< and in the reduced run; the rows before it stay as they are
  std::vector<std::string> names; ///< of the reduced run's rows
};

/// Grows one change of each layer by the tokens that it is given.
class JointPatcher {
public:
  /// For up to `tokens` tokens. In each layer the first site with room for them is changed; or, if
  /// it `chooses`, the one that replays best, of the tokens that it is given first: then neither
  /// run may be of a cache.
  JointPatcher(SplitModel model, int64_t tokens, bool chooses);

  /// Takes both runs through all layers, and lets the changes serve the reduced run's rows.
  /// Errors: two tokens that no change serves, named; numbers that are not finite; those of a
  /// passage.
  llvm::Error read(JointPassages passages, const ProgressCall &fitted = nullptr);

  /// What there is now, of `tokens` tokens. Errors: weights that cannot be read.
  llvm::Expected<JointPatch> patch(int64_t tokens) const;

private:
  /// A change of one site, and how long what the site reads is, relative to what it should write.
  struct Grown {
    JointFit fit;
    double stretch = 0;
  };

  llvm::Error fit(llvm::ArrayRef<size_t> candidates, JointPassages &passages);
  llvm::Expected<Grown> tried(size_t number, JointPassages &passages);
  llvm::Expected<FloatMatrix> wantedOf(size_t number, JointPassages &passages) const;
  llvm::Error whyNone(const JointFit &fit) const;
  llvm::Error grow(size_t number, Grown &grown, JointPassages &passages,
                   const FloatMatrix &wanted) const;

  SplitModel model;
  std::vector<llvm::SmallVector<size_t, 2>> layers; ///< the sites that may be changed
  JointChanges all;
  std::map<size_t, double> stretches;
  std::vector<std::string> names; ///< of all rows so far
};

/// Fails where no patch can be exact for the request's texts and `more` tokens, as sizes show.
llvm::Error checkJointRequest(const SplitModel &model, const JointRequest &request,
                              int64_t more = 0);

/// The tokens of the texts behind the context, or behind what stands in front without it, where
/// they stand there; the texts are the last sequences.
std::vector<PassageSequence> behindContext(const JointRequest &request);
std::vector<PassageSequence> behindPrefix(const JointRequest &request);

/// What messages call the rows of behindPrefix.
std::vector<std::string> rowNames(const JointRequest &request);

/// Reads the texts in three runs, of which the second one has the changes and none of the last two
/// the context, and compares the logits of each token.
llvm::Expected<JointCheck> compareRuns(SplitModel model, const JointChanges &changes,
                                       const JointRequest &request);

/// Of each layer the sites by which a joint patch can be exact (findJointMatrices), in their order;
/// how much a site reads.
std::vector<llvm::SmallVector<size_t, 2>> jointSites(const SplitProgram &split);
int64_t inputsOf(const SplitSite &site);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_JOINTRUNS_H
