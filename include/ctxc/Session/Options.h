//===- Options.h - how a model is read, planned and run -------------------===//
#ifndef CTXC_SESSION_OPTIONS_H
#define CTXC_SESSION_OPTIONS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Session/Diagnostic.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace ctxc {

class Ranks;

/// What runs the model.
enum class Engine {
  Compiled,  ///< kernels compiled for this processor, float32
  Reference, ///< float64, slow; the other engines are tested against it
  Gpu        ///< kernels for the GPU that LoadOptions::gpu names, float32 (docs/gpu.md)
};

/// Where the weights come from: the model itself, unless one of these is given.
struct WeightSource {
  std::string checkpoint;       ///< a Hugging Face directory or a GGUF file
  std::optional<uint64_t> seed; ///< random numbers (randomWeights)
  bool isModelsOwn() const { return checkpoint.empty() && !seed; }
  bool operator==(const WeightSource &other) const {
    return checkpoint == other.checkpoint && seed == other.seed;
  }
};

struct LoadOptions {
  /// False: the structure is enough, to check or to compile. A config.json without weights is then
  /// sufficient, and each parameter has the type that it is stored in.
  bool needWeights = true;
  /// The storage type of all weights: F32, BF16 or F16. By default BF16 or F16 where all floating
  /// tensors are stored so, else F32; quantised checkpoints keep their types.
  std::optional<DType> storage;
  /// For .mlir models, which have no weights of their own.
  WeightSource weights;

  /// A tokenizer and its chat template, in place of the model's own: a directory, a tokenizer.json,
  /// a tokenizer.model, or a GGUF file.
  std::string tokenizer;

  /// Which parameters are to be patched, and how. Where `measure` and `refute` are not set, the
  /// model sets its own. A parameter's name may leave out ".weight".
  ModelOptions planning;

  Engine engine = Engine::Compiled;
  std::string gpu; ///< for Engine::Gpu, as Device::open takes it: "cuda", "rocm" or "vulkan"
  int threads = 0; ///< for Engine::Compiled; 0: one for each core
  /// For Engine::Compiled, the caller's threads instead of its own (ParallelFor.h).
  std::optional<ParallelFor> parallelFor;
  /// Called while the model runs: true ends the call with Cancelled (Executor::setInterrupt).
  std::function<bool()> interrupt;
  /// Told how many of a call's tokens are done (Executor::setProgress).
  std::function<void(int64_t done, int64_t all)> progress;
  /// Prompts are read with activations rounded to bfloat16 (CompiledOptions::roundedPrompts).
  bool roundedPrompts = false;
  /// Quantised matrices are multiplied in integers, with vectors that are rounded to 8 bits for
  /// each 32 numbers (ctxc/Numerics/ByteVectors.h): faster, and less exact. On the processor alone.
  bool integerProducts = false;
  /// Attention keeps keys and values rounded to bfloat16, in half the memory: less exact. A token
  /// reads its own as rounded too, so that a patch is as exact as without. On the processor alone.
  bool roundedCache = false;

  /// Weights are copied into large pages of memory before they are read, not read from the file's
  /// pages: some machines read these faster, while the copy takes time and the weights'
  /// size in memory (docs/measurements.md#large-pages). On the processor alone.
  bool largePages = false;

  /// For Engine::Compiled: the ranks that share the model (Ranks.h), which must outlive it; null:
  /// this process alone. Rank 0's model is used as any other, while the others' serve
  /// (Model::serve).
  Ranks *ranks = nullptr;
  /// How many of them share each layer; the layers are cut among the groups of so many ranks.
  int tensorRanks = 1;

  /// Takes the diagnostics. Without a handler the model keeps them (Model::takeDiagnostics), and an
  /// error that a call returns contains the text of those that led to it.
  DiagnosticHandler diagnostics;
  /// Dialects beside ctxc's own, as plugins register them. Read while the model is loaded.
  const mlir::DialectRegistry *dialects = nullptr;
};

/// The option that an OptionError is about.
enum class Option {
  Storage,
  Weights,
  Parameters,
  StartLayer,
  RoundedPrompts,
  IntegerProducts,
  RoundedCache,
  LargePages,
  Engine,
  CompileTarget,
  Prefix,
  Rows
};
/// As a message names it: "storage type", "start layer", …
llvm::StringRef stringify(Option option);

/// An option that the model cannot be loaded, planned or run with.
class OptionError : public llvm::ErrorInfo<OptionError> {
public:
  static char ID;
  OptionError(Option option, const llvm::Twine &problem) : option(option), problem(problem.str()) {}
  /// "start layer: found 9, expected a layer from 0 to 5"
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  Option option;
  std::string problem;
};

/// A layer that is to be patched has no plan: its verdict is rejected or undecided. The handler got
/// the reasons as diagnostics; without a handler they are the error's text.
class VerdictAgainst : public llvm::ErrorInfo<VerdictAgainst> {
public:
  static char ID;
  explicit VerdictAgainst(std::string reasons) : reasons(std::move(reasons)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string reasons; ///< empty where a handler was given them
};

} // namespace ctxc

#endif // CTXC_SESSION_OPTIONS_H
