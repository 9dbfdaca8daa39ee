// The check that every call on a model begins with: one thread at a time.
#ifndef CTXC_LIB_SESSION_USE_H
#define CTXC_LIB_SESSION_USE_H

#include "StoredParts.h"
#include "ctxc/Session/Model.h"

namespace ctxc {

/// While this object lives, its thread uses the model. Calls nest.
class Model::Use {
public:
  explicit Use(Model &model) : model(&model) {}
  Use(Use &&other) : model(std::exchange(other.model, nullptr)) {}
  ~Use() {
    if (model && --model->depth == 0)
      model->user = std::thread::id();
  }

private:
  Model *model;
};

/// The model in use, with what runs it.
struct Model::Running {
  Use use;
  Executor &executor;
};

/// The same, and the norms that patches are measured by.
struct Model::Measuring {
  Use use;
  Executor &executor;
  PatchNorms &norms;
};

/// The first op that has no kernels and that the reference runs: a part of an exported program, or
/// where `isProgram`, also a mixer of one; null where there is none.
mlir::Operation *opWithoutKernels(mlir::ModuleOp module, bool isProgram);
/// What keeps a part of an exported program from being an op of xf; empty for another op.
llvm::StringRef obstacleOf(mlir::Operation &op);

/// What a model and those reopened from it share in memory.
struct Model::Shared {
  std::mutex mutex;
  std::shared_ptr<Checkpoint> checkpoint; ///< whose memory `weights` points into
  std::shared_ptr<Checkpoint> constants;  ///< of a PyTorch program: what it has beside its weights
  std::vector<StoredPart> parts;          ///< its parameters in tensors of other weights
  PartsOfWeights ofOthers;                ///< these, where such weights are used
  std::vector<std::string> inProgram;     ///< those constants whose numbers are in the module
  std::unique_ptr<Weights> weights;
  std::string hash;
  std::map<DType, std::shared_ptr<KnownNorms>> norms; ///< by storage type
};

/// The model with its layers split at the sites of an adapter, and its kernels.
struct Model::Split {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  SplitProgram program;
  std::unique_ptr<StepKernels> steps, targets;
  Executor *elsewhere = nullptr; ///< what runs the steps, where that is not this processor
};

} // namespace ctxc

#endif // CTXC_LIB_SESSION_USE_H
