//===- Proof.h - the proof object: what a check claims, as data -----------===//
//
// The claims of `ctxc check MODEL --proof FILE`, one for each distinct structure of
// block: its verdict, and what the verdict rests on. Plain data and its file format
// (JSON, docs/proofs.md); `checkProof` (CheckProof.h) judges it. Values are named as the
// block's printed text names them ("%gate").
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROOF_PROOF_H
#define CTXC_PROOF_PROOF_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace ctxc::proof {

using Names = std::vector<std::string>;

/// An instance of a lemma, for an op that is patched, a link that is divided by, or a
/// selection that both runs share, with the condition that it needs.
struct Instance {
  std::string op;        ///< the op, by its result
  std::string parameter; ///< the block's name for what is patched; empty if nothing is
  std::string change;    ///< "rank1" or "delta"; empty if nothing is patched
  std::string lemma;     ///< a rule's id, or the op's own name for it if there is no rule
  std::string needs;     ///< "nothing", "nonzero-vector", "nonzero-elements", "nonzero-sum",
                         ///< "finite-elements", "same-selection"
  std::string of;        ///< the value that must meet it; empty for "nothing"
  std::string fails;     ///< where it can fail: "never", "null-set", "open-set"; or empty
};

/// G and its chain: solved link by link, the site's output gives the goal its full-run value.
struct Output {
  std::string goal;               ///< the value that gets back what it had in the full run
  Names chain;                    ///< from the site to the goal; the site alone may be the goal
  std::vector<Instance> patches;  ///< of the site, after the matrix that shares its change
  std::vector<Instance> divisors; ///< of links with a condition, from the site on
  std::string split;              ///< through a mixture: "even" or "least-norm"; otherwise empty
};

/// A value that every path from a patch to an output passes or ends in, and the set in which it
/// lies for every patch.
struct Barrier {
  std::string value;
  std::string image = "anything";            ///< "anything", "ball", "box", "plane", "half-space"
  std::optional<double> radius = {};         ///< ball: its L2 radius
  std::optional<double> low = {}, high = {}; ///< box: of each entry; a side may be open
  std::optional<double> total = {};          ///< plane: the sum of the entries
  std::string normal = "";                   ///< half-space: no patch makes the product negative
};

/// Weights and a context for which an output is out of reach.
struct Target {
  int64_t seed = 1;
  std::string scaled;  ///< a parameter, "context", or empty
  double factor = 1;   ///< by which `scaled` is multiplied
  double distance = 0; ///< L2, of the full run's output from all that patches reach
};

/// A reason for a rejection.
struct Cause {
  std::string rule;
  std::vector<int64_t> outputs; ///< the outputs that are out of reach together
  Target target;
};

/// The claim about one structure: a block with its bindings.
struct Claim {
  std::string block, layers, digest;
  Names text;           ///< the block's own, line by line
  Names frozen, shared; ///< by the layers that run it
  bool inputsDepend = false;
  Names equalInputs; ///< the inputs that do not depend, if others do
  std::string verdict, theorem;

  // Of controllable and output-only.
  Names parameters; ///< the patched ones: the cut's, then those of the outputs
  std::vector<Instance> cut;
  std::vector<Output> outputs; ///< in an order in which they can be solved
  std::vector<Instance> selections;
  Names open; ///< output-only: a path on which the context passes the cut

  // Of rejected.
  Names patchable;
  std::vector<Barrier> behind;
  std::vector<Cause> causes;

  // Of undecided.
  std::string missing; ///< a rule
  Names stops;         ///< where the walk back from the outputs ends
};

struct Proof {
  int64_t startLayer = 0;
  std::string sites = "mlp"; ///< "mlp", or "all": also what joins the residual stream (W_o)
  /// If the context reaches the logits past the patched layers, so that their claims are not
  /// enough for the model: the values on its path, from where it enters to the logits, named as in
  /// the model's text. Otherwise empty.
  Names past;
  std::vector<Claim> claims;
};

/// Writes each instance on one line, for readers.
void writeProof(const Proof &proof, llvm::raw_ostream &os);

/// Reads what writeProof wrote. Every message begins with `name`. Errors, all of them together:
/// malformed JSON, another format or version, fields that are missing, unknown or of another kind.
llvm::Expected<Proof> parseProof(llvm::StringRef text, llvm::StringRef name);

} // namespace ctxc::proof

#endif // CTXC_PROOF_PROOF_H
