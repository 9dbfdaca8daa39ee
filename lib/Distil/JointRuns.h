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

/// Tokens that both runs read at once, in two passages or as the sequences of one.
struct JointPassages {
  Passage &full, &reduced;
  int64_t taught = 0;             ///< the first row of the texts in the full run
  int64_t begin = 0;              ///< the first row of the reduced run, to the end of its passage
  int64_t learned = 0;            ///< of these rows, the first of the texts: those before it stay
  std::vector<std::string> names; ///< of the reduced run's rows

  int64_t rows() const { return reduced.rows() - begin; }
};

/// Grows one change of each layer by the tokens that it is given.
class JointPatcher {
public:
  /// For up to `tokens` tokens. In each layer the first site with room for them is changed; or, if
  /// it `chooses`, the one that replays best, of the tokens that it is given first: then neither
  /// run may be of a cache.
  JointPatcher(SplitModel model, int64_t tokens, bool chooses);

  /// Takes both runs through all layers, and lets the changes serve the reduced run's rows. A token
  /// whose state depends on others' is left to the next layer. Errors: two tokens that no change
  /// serves, named; numbers that are not finite; those of a passage.
  llvm::Error read(JointPassages passages, const ProgressCall &fitted = nullptr);

  /// How many rows, from the first one on, are served.
  int64_t served() const { return exact.value_or(names.size()); }
  /// Why the row behind them is not served; empty where all are.
  const std::string &whyNotServed() const { return reason; }

  /// What there is now, of `tokens` tokens. Errors: weights that cannot be read.
  llvm::Expected<JointPatch> patch(int64_t tokens) const;
  /// The same with a ridge penalty, of which the rows from `first` on say how strong it is.
  Adapter ridged(double strength, int64_t first) const;
  /// What the last call of `read` has added to the change of each matrix.
  std::vector<MatrixChange> added() const;

private:
  /// A change of one matrix, and how long what it reads is, relative to what it should write.
  struct Grown {
    JointFit fit;
    int64_t before = 0; ///< its rank before the last rows
    double stretch = 0;
    /// Of each row of the fit: the token, and the layer, since a matrix of a layer that runs again
    /// sees each token in each run.
    std::vector<std::pair<int64_t, int64_t>> rows = {};
    std::map<int64_t, std::vector<int64_t>> left =
        {}; ///< by the layer: the tokens it does not serve
    /// Of the last rows those that a layer before has left, and how far a norm keeps this one from
    /// bringing them back, relative to the goal.
    std::map<int64_t, double> remains = {};
  };

  int64_t lastLayer() const;
  bool mayLeave(const SplitSite &site) const; ///< a token to the next layer
  std::vector<std::vector<double>> sharesOf(const Grown &grown) const;
  llvm::Error fit(llvm::ArrayRef<size_t> candidates, JointPassages &passages);
  llvm::Expected<Grown> tried(size_t number, JointPassages &passages);
  void note(const Grown &grown, const SplitSite &site);
  llvm::Expected<FloatMatrix> targetOf(size_t number, JointPassages &passages) const;
  llvm::Expected<FloatMatrix> wantedOf(size_t number, JointPassages &passages,
                                       std::map<int64_t, double> &remains) const;
  std::string nameOf(const Grown &grown, size_t row) const;
  std::string whyNone(const Grown &grown, size_t row, const SplitSite &site) const;
  llvm::Error grow(const SplitSite &site, Grown &grown, JointPassages &passages,
                   const FloatMatrix &wanted) const;

  SplitModel model;
  std::vector<llvm::SmallVector<size_t, 2>> layers; ///< the sites that may be changed
  std::map<size_t, Grown> changes;                  ///< by the first site of their matrix
  std::vector<std::string> names;                   ///< of all rows so far
  /// Of each, how far from the full run's residual stream the last layers have left it, relative to
  /// that.
  std::vector<double> astray;
  bool bringsBack = true;       ///< each layer what the one before it has left
  std::optional<int64_t> exact; ///< the first row that is not served
  std::string reason;           ///< and why
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

/// The step that gives each token's logits by itself. Errors: there is none.
llvm::Expected<size_t> headOf(const SplitModel &model);

/// Reads the texts in three runs, of which the second one has the changes and none of the last two
/// the context, and compares the logits of each token.
llvm::Expected<JointCheck> compareRuns(SplitModel model, const JointChanges &changes,
                                       const JointRequest &request);

/// Of each layer the sites by which a joint patch can be exact (findJointMatrices), in their order;
/// how much a site reads; which one has room for the most tokens.
std::vector<llvm::SmallVector<size_t, 2>> jointSites(const SplitProgram &split);
int64_t inputsOf(const SplitSite &site);
/// The first site of the same matrix, and how many there are: a layer may run several times.
size_t firstOf(const SplitProgram &split, const SplitSite &site);
int64_t runsOf(const SplitProgram &split, const SplitSite &site);
/// For how many tokens one change of the matrix can be exact.
int64_t capacityOf(const SplitProgram &split, const SplitSite &site);
size_t widestOf(const SplitProgram &split, llvm::ArrayRef<size_t> candidates);

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_JOINTRUNS_H
