//===- Witness.h - a counterexample to a block's controllability ----------===//
//
// Theorem 4 ("impossibility") and its relatives made concrete: weights of a block, a
// context and a token for which no change of the patchable parameters brings the
// reduced run's output T' to the full run's T_C; and how near any change comes.
//
// At fixed weights and data, T' stays, for every patch, in a sum of convex sets (balls and boxes of
// bounded images, half spaces of one-sided ones, the span of free values). If T_C lies outside, a
// direction w, ‖w‖ = 1, proves it:
//
//     ‖T' − T_C‖ ≥ ⟨w, T_C⟩ − sup ⟨w, T'⟩ = leastError
//
// and the best w makes this the distance of T_C from the set. To find such a T_C, the
// context's effect is made large (a parameter of the contextual part, or the context
// itself, is scaled up), as in the theorem's proof.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EVIDENCE_WITNESS_H
#define CTXC_EVIDENCE_WITNESS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Evidence/PatchSearch.h"
#include "llvm/Support/JSON.h"

namespace ctxc {

/// One stored tensor of a witness, under the block's name for it.
struct WitnessTensor {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 2> shape;
  std::vector<uint8_t> bytes;
};

struct Witness {
  std::string block;     ///< the text of a module with only the block; the layer's frozen
                         ///< parameters and settings are written into it, and ops that the
                         ///< reference cannot run are replaced
  std::string name;      ///< the block's
  std::string why;       ///< the verdict's main cause, in words
  bool allSites = false; ///< patches may also change W_o (SiteScope::All)
  uint64_t seed = 1;
  std::string scaled; ///< "'o' by 64": what was made larger; empty if nothing was
  std::string sizes;  ///< "36 for 4096" for a block in smaller sizes; not stored
  std::vector<WitnessTensor> weights;
  Sample sample;

  Eigen::VectorXd full, reduced; ///< T_C and T, unpatched: all outputs, one after the other
  Eigen::VectorXd direction;     ///< w
  /// Whether T_C is shown to be out of reach by the number of vectors that outputs are made of
  /// (Analysis/OutputSpan.h), and not by a direction: w then leads from the nearest such outputs.
  bool byRank = false;
  double target = 0;     ///< ⟨w, T_C⟩
  double limit = 0;      ///< no patch makes ⟨w, T'⟩ larger
  double leastError = 0; ///< target − limit: no patch comes nearer, in the L2 norm
  double attained = 0;   ///< how near the set that holds all T' comes; ≥ leastError

  /// ‖T_C − T‖: what the context changes.
  double change() const { return (full - reduced).norm(); }
};

struct WitnessOptions {
  uint64_t seed = 1;
  int seeds = 3;       ///< how many are tried, from `seed` on
  int64_t context = 3; ///< tokens
  /// The search ends at the first witness whose least error is this share of the context's change;
  /// if there is none, it returns the best.
  double clear = 0.5;
  /// If not empty: the rule by which the block is rejected. A contextual op without a meaning in
  /// the reference is then replaced by an attention; and if the block has more than `mostNumbers`
  /// numbers, the search uses smaller sizes at which the rule also rejects it, if there are any.
  llvm::StringRef rule = "";
  /// Whether to search in a block with more numbers for which there are no smaller sizes.
  bool anySize = true;

  static constexpr int64_t mostNumbers = 200'000;
};

/// Searches for a witness against `block` under `options`; none if a patch may reach the output of
/// every candidate that was tried. `layer` gives settings, or is null. Errors: those of
/// the reference, such as an op that has no meaning in it; a block that is too large.
llvm::Expected<std::optional<Witness>> findWitness(xf::BlockOp block, const PlanOptions &options,
                                                   xf::LayerOp layer,
                                                   const WitnessOptions &search = {});

/// A Refutation (Planner.h) by findWitness and replayWitness: the least error of a witness that was
/// confirmed.
Refuted refuteByWitness(xf::BlockOp block, const PlanOptions &options, llvm::StringRef rule);

/// A witness evaluated again.
struct Replay {
  double difference = 0;             ///< the largest between the recorded and the found outputs
  double leastError = 0;             ///< by the recorded direction, everything else recomputed
  std::optional<PatchSearch> search; ///< a blind search, if the block is small enough

  /// Whether the outputs are the recorded ones, the direction proves the recorded error, and the
  /// search came no nearer.
  bool confirms(const Witness &witness) const;
};

/// Parses the witness's block in `context`, which must know the dialects, and evaluates.
/// Errors: text that is no such block, tensors that do not fit it.
llvm::Expected<Replay> replayWitness(const Witness &witness, mlir::MLIRContext &context,
                                     const SearchOptions &search = {});

/// Writes `path` (JSON: the block's text, the claims, the names of tensors) and beside it
/// `path` with .safetensors in place of .json (weights, activations, outputs, directions).
llvm::Error writeWitnesses(llvm::ArrayRef<Witness> witnesses, llvm::StringRef path);

/// Reads such a file. Errors name the file, what was found and what was expected.
llvm::Expected<std::vector<Witness>> readWitnesses(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_EVIDENCE_WITNESS_H
