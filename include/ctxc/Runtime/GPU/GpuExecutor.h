//===- GpuExecutor.h - runs a model with kernels on a GPU -----------------===//
#ifndef CTXC_RUNTIME_GPU_GPUEXECUTOR_H
#define CTXC_RUNTIME_GPU_GPUEXECUTOR_H

#include "ctxc/Program/Executor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/GPU/Device.h"
#include "ctxc/Runtime/Shard/Stage.h"

namespace ctxc {

/// One of several ranks that share a model.
struct RankShare {
  const shard::LocalBlocks *local =
      nullptr;                      ///< its parts of the blocks; null: it runs whole blocks
  Neighbours *neighbours = nullptr; ///< the other ranks
  std::optional<Stage> stage = std::nullopt; ///< the steps that it runs; none: all
};

struct GpuOptions {
  /// As CompiledOptions::roundedPrompts, for chunks of a prompt.
  bool roundedPrompts = false;
  /// The most tokens of a chunk; 0: as many as the target takes, 1: tokens are run one by one.
  int64_t chunk = 0;
  /// With `chunk`: the tokens, at least 2, of smaller chunks, for short prompts and for rests of
  /// prompts; 0: there are none.
  int64_t shortChunk = 0;
  /// Where a run keeps of a layer with a window only what later tokens see, they are moved to the
  /// start of its memory, through the host: at most once in so many tokens, for which there is
  /// memory besides the window's.
  int64_t movedTogether = 4096;
  /// What it names must outlive the executor. All ranks call the executor alike; only those of the
  /// last stage have logits.
  RankShare share = {};
  /// Called where ranks' sums go through the hosts, with the reason why not from device to device.
  std::function<void(llvm::StringRef reason)> onHosts = {};
};

/// Compiles the program's blocks for `device`, uploads the weights, and runs tokens: a single token
/// as one sequence of launches, a prompt in chunks of many tokens, whose kernels are compiled for
/// the first prompt. Activations are float32, weights are read in their storage type. `program` and
/// `weights` must outlive the result. Fails if a block has no GPU form, if the model is
/// bidirectional, or if the device's memory is too small (the message says how much is needed). If
/// only a dual or an applied block has no GPU form, patches fail, with that reason. A prompt runs
/// token by token if its kernels have no form for many tokens, or if memory is too small.
llvm::Expected<std::unique_ptr<Executor>> createGpuExecutor(const Program &program,
                                                            Weights &weights,
                                                            std::unique_ptr<Device> device,
                                                            const GpuOptions &options = {});

} // namespace ctxc

#endif // CTXC_RUNTIME_GPU_GPUEXECUTOR_H
