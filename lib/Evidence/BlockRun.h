// Runs of one block in the float64 reference, token after token.
#ifndef CTXC_LIB_EVIDENCE_BLOCKRUN_H
#define CTXC_LIB_EVIDENCE_BLOCKRUN_H

#include "ctxc/Evidence/Sample.h"
#include "ctxc/Reference/Evaluation.h"

namespace ctxc {

/// Where a run's weights and settings come from. Both must outlive it.
struct RunSource {
  Weights &weights;
  xf::LayerOp layer; ///< null: the block's own names and defaults
  /// Parameters, by the block's names, that replace those of the weights.
  llvm::StringMap<reference::StoredTensor> parameters = {};
};

/// Is shown all values of the token that a run is for.
using Seen = llvm::function_ref<void(const reference::Evaluation &)>;

/// The large matrices of a block, as a counter makes them: what a layer stores once is one.
llvm::StringMap<reference::StoredTensor> countedMatrices(xf::BlockOp block, xf::LayerOp layer,
                                                         uint64_t seed);

/// Runs `inputs` (one matrix row for each token) through `block` at positions `first`, first + 1,
/// …; what the contextual ops remember is added to `state`. `loads`: the patch of an applied block.
llvm::Expected<Activations> runTokens(xf::BlockOp block, const Activations &inputs, int64_t first,
                                      reference::BlockState &state, const RunSource &from,
                                      std::vector<reference::BlockPatch> loads = {},
                                      Seen seen = nullptr);

/// The first `count` tokens of each.
Activations firstTokens(const Activations &all, int64_t count);

/// The state that the reduced run starts from: the sample's kept tokens, run unpatched.
llvm::Expected<reference::BlockState> keptState(xf::BlockOp block, const Sample &sample,
                                                const RunSource &from);

/// The full run of the sample's token.
llvm::Expected<Activations> runFull(xf::BlockOp block, const Sample &sample, const RunSource &from,
                                    Seen seen = nullptr);

/// The reduced run of the sample's token, of a block or (with `loads`) of its applied form.
llvm::Expected<Activations> runReduced(xf::BlockOp block, xf::BlockOp form, const Sample &sample,
                                       const RunSource &from,
                                       std::vector<reference::BlockPatch> loads = {},
                                       Seen seen = nullptr);

/// All numbers of a parameter; of a bank, one entry after the other.
llvm::Expected<std::vector<double>> readParameter(xf::ParamOp param, const RunSource &from);

/// Registers the ops' meanings, if that has not been done.
void needReference(xf::BlockOp block);

/// The outputs of the full run of a block, and of the reduced one without a patch.
struct BothRuns {
  Activations full, reduced;
};
llvm::Expected<BothRuns> runBoth(xf::BlockOp block, const Sample &sample, const RunSource &from,
                                 Seen seen = nullptr);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_BLOCKRUN_H
