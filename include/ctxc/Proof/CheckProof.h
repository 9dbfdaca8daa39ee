//===- CheckProof.h - checks a proof, independently of what made it -------===//
//
// A small checker. It uses the interfaces of the ops of xf and patch, and shares no code with
// analysis and planning: its forward and backward walks are its own. It requires of a proof:
//
//   model      the context reaches the logits only through the claimed layers, or by the path
//              that the proof names
//   structure  every structure of the model is claimed once, with its text and bindings;
//              the cut meets every path; chains can be solved; parameters may be patched;
//              every lemma instance has its condition; barriers hold all that patches move
//   numbers    on random weights in float64: the patch that the claims describe, put into
//              the parameters, makes the run without the context equal the one with it, and
//              nothing else does; a target out of reach is out of reach
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROOF_CHECKPROOF_H
#define CTXC_PROOF_CHECKPROOF_H

#include "ctxc/Proof/Structure.h"

namespace ctxc::proof {

struct CheckOptions {
  int64_t seed = 1; ///< of the random weights and activations of a success
  /// Blocks with more numbers than this are not run.
  int64_t numbers = 20000000;
  int64_t outputs = 4096; ///< nor rejected ones with more entries than this
};

/// The numeric test of a claim.
struct Replay {
  bool done = false;
  std::string skipped;     ///< why it was not
  double error = 0;        ///< success: max |T' − T_C|, the patch in the parameters
  double control = 0;      ///< and max |T − T_C| without it
  double tolerance = 0;    ///< of the error: 1e-7 · min(conditioning, 1e4)
  double conditioning = 1; ///< success: the largest number met, and the largest ‖Δp‖ / ‖p‖
  double distance = 0;     ///< rejected: the least distance proven over the causes
};

struct Judgement {
  /// Everything that is wrong, each "block 'b', layers 0-3: …: found …, expected …".
  std::vector<std::string> problems;
  std::vector<Replay> replays; ///< one for each claim
  /// How many claims of a verdict were not tested in numbers: nothing was found against them, but
  /// they are not shown to hold.
  size_t skipped = 0;

  bool holds() const { return problems.empty() && skipped == 0; }
};

Judgement checkProof(mlir::ModuleOp module, const Proof &proof, const CheckOptions &options = {});

/// How far the full run's outputs are from all that patches reach.
struct BeyondReach {
  double distance = 0; ///< proven, L2; 0 if there may be none
  double change = 0;   ///< ‖T_C − T‖, what the context changes
};

/// For a rejection: the distance, measured for the outputs, weights and context of `cause` by the
/// barriers of `claim`. Errors: a tail that is not affine in them, numbers that cannot be computed.
llvm::Expected<BeyondReach> distanceBeyondReach(const Structure &structure, const Claim &claim,
                                                llvm::StringRef sites, const Cause &cause);

/// Why a rejection of the structure is not run; empty if it is run.
std::string tooLargeToReject(const Structure &structure, const CheckOptions &options);

/// The rule that follows from the barriers for outputs that no patch brings to their targets:
/// nothing-reaches-output, bounded-output, one-sided-output, thin-output, few-vectors or
/// counterexample.
std::string ruleOfBarriers(const Structure &structure, const Claim &claim, llvm::StringRef sites,
                           llvm::ArrayRef<int64_t> outputs);

} // namespace ctxc::proof

#endif // CTXC_PROOF_CHECKPROOF_H
