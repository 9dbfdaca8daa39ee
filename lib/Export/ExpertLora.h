// The experts' matrices of a mixture, as PEFT and llama.cpp have them: those of a layer in one
// tensor, whatever the checkpoint stores.
#ifndef CTXC_LIB_EXPORT_EXPERTLORA_H
#define CTXC_LIB_EXPORT_EXPERTLORA_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Program/Adapter.h"

namespace ctxc {

/// Where an expert's matrix is. transformers has all experts of a layer as one parameter of a
/// module, such as "model.layers.0.mlp.experts" and "down_proj".
struct ExpertPlace {
  std::string bank; ///< as stored (SliceName.h): experts.*.w2.weight, experts.down_proj
  int64_t index = 0;
  std::string module, parameter;
};

/// None where `parameter` is no expert's matrix, or one that has no name in transformers.
std::optional<ExpertPlace> expertPlace(llvm::StringRef parameter);

/// The changes of all experts of a layer, with factors of the same rank.
struct ExpertLora {
  ExpertPlace place; ///< of one of them
  int64_t experts = 0, rank = 0, in = 0, out = 0;
  std::vector<float> a, b; ///< experts × rank × in, experts × out × rank; zeros without a change
};

/// The changes of `adapter` that are experts', by layers. `checkpoint` says how many experts there
/// are.
std::vector<ExpertLora> expertLoras(const Adapter &adapter, const Checkpoint &checkpoint);

/// The experts' changes that such factors make, without experts that do not change. `inFirst`:
/// their matrices are stored as (in, out).
std::vector<MatrixChange> expertChanges(const ExpertLora &lora, bool inFirst);

/// The experts of `module` (of its parameter `parameter`) in `checkpoint`: their bank, how many
/// there are, and the shape of each. None if there is no such bank.
struct StoredExperts {
  std::string bank;
  int64_t count = 0;
  llvm::SmallVector<int64_t, 4> shape;
};
std::optional<StoredExperts> findExperts(llvm::StringRef module, llvm::StringRef parameter,
                                         const Checkpoint &checkpoint);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_EXPERTLORA_H
