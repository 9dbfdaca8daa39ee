//===- Options.h - how a model is read, planned and run -------------------===//
#ifndef CTXC_SESSION_OPTIONS_H
#define CTXC_SESSION_OPTIONS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Lowering/PromptProducts.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Program/ParallelFor.h"
#include "ctxc/Session/Diagnostic.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

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
  /// False: only the structure is needed, to check or to compile. A config.json without weights is
  /// then sufficient, and each parameter keeps the type that it is stored in.
  bool needWeights = true;
  /// The storage type of all weights: F32, BF16 or F16. By default BF16 or F16 if all
  /// floating-point tensors have that type, otherwise F32; quantised checkpoints keep their types.
  std::optional<DType> storage;
  /// For .mlir models, which have no weights of their own.
  WeightSource weights;

  /// What was read of an exported program is compared with the numbers of its source that the file carries,
  /// once for each file (Model::notCompared).
  bool selfCheck = true;

  /// A tokenizer and its chat template, in place of the model's own: a directory, a tokenizer.json,
  /// a tokenizer.model, or a GGUF file.
  std::string tokenizer;

  /// Which parameters to patch, and how. If `measure` and `refute` are not set, the model sets its
  /// own. ".weight" may be left out at the end of a parameter's name.
  ModelOptions planning;

  Engine engine = Engine::Compiled;
  std::string gpu; ///< for Engine::Gpu, as Device::open takes it (ctxc/Support/Devices.def)
  int threads = 0; ///< for Engine::Compiled; 0: one for each core
  /// For Engine::Compiled, the caller's threads instead of its own (ParallelFor.h).
  std::optional<ParallelFor> parallelFor;
  /// Called while the model runs: true ends the call with Cancelled (Executor::setInterrupt).
  std::function<bool()> interrupt;
  /// Called with how many of a call's tokens are done (Executor::setProgress).
  std::function<void(int64_t done, int64_t all)> progress;
  /// How prompts are read; Split is for Engine::Compiled only.
  PromptProducts prompts = PromptProducts::Exact;
  /// Quantised matrices are multiplied in integers, with vectors that are rounded to 8 bits, with a
  /// scale for each 32 numbers (ctxc/Numerics/ByteVectors.h): faster, and less exact. CPU only.
  bool integerProducts = false;
  /// The KV cache is rounded to bfloat16, in half the memory: less exact. A token also reads its
  /// own key and value rounded, so that a patch is as exact as without this option. CPU only.
  bool roundedCache = false;

  /// Weights are copied into large pages before they are read, instead of being read from the
  /// file's pages: some machines read large pages faster, but the copy takes time, and as much
  /// memory as the weights (docs/measurements.md#large-pages). CPU only.
  bool largePages = false;

  /// For Engine::Compiled and Engine::Gpu: the ranks that share the model (Ranks.h), which must
  /// outlive it; null: only this process. Rank 0's model is used like any other, while the models
  /// of the other ranks serve it (Model::serve).
  Ranks *ranks = nullptr;
  /// How many ranks share each layer; the layers are divided among groups of this many ranks.
  int tensorRanks = 1;

  /// Takes the diagnostics. Without a handler the model keeps them (Model::takeDiagnostics), and an
  /// error that a call returns contains the text of the diagnostics that led to it.
  DiagnosticHandler diagnostics;
  /// Dialects beside ctxc's own, as plugins register them. Read while the model is loaded.
  const mlir::DialectRegistry *dialects = nullptr;
};

/// The option that an OptionError is about.
enum class Option {
#define CTXC_OPTION(NAME, ...) NAME,
#define CTXC_OTHER_OPTION(NAME, ...) NAME,
#define CTXC_COMPILE_OPTION(NAME, ...) NAME,
#include "ctxc/Session/Options.def"
};

/// A row of Options.def.
struct OptionText {
  Option option;
  llvm::StringRef words; ///< as a message names it: "storage type", "start layer", …
  enum { Plan, Run, Compile } commands;
  llvm::StringRef flag; ///< of the command line, with its dashes; "--" if it has none
  llvm::StringRef value = {};
  std::vector<llvm::StringRef> choices = {}; ///< the values that are allowed, if not all are
  std::string help = {};
  llvm::StringRef python = {}; ///< in Python; empty if it is not there
  std::string pythonHelp = {};
};
/// In the order of Options.def.
llvm::ArrayRef<OptionText> optionTexts();
const OptionText &rowOf(Option option);

/// The names of an option's values, those of the type T, each with what it stands for.
template <typename T> struct Named {
  llvm::StringRef name;
  T value;
  llvm::StringRef note = {};
};
template <typename T> std::vector<Named<T>> namesOf();
template <> std::vector<Named<patch::UpdateKind>> namesOf();
template <> std::vector<Named<std::optional<DType>>> namesOf();
template <> std::vector<Named<SiteScope>> namesOf();
template <> std::vector<Named<Objective>> namesOf();
template <> std::vector<Named<xf::Split>> namesOf();
/// Whether an option's values of this type have names.
template <typename T>
constexpr bool hasNames = std::is_enum_v<T> || std::is_same_v<T, std::optional<DType>>;

/// The names with their notes: "a (default), b, c"; `quote` stands around each.
template <typename T> std::string listOfNames(llvm::StringRef quote = "") {
  std::string list;
  for (const Named<T> &each : namesOf<T>()) {
    list += (list.empty() ? "" : ", ") + (quote + each.name + quote).str();
    if (!each.note.empty())
      list += (" (" + each.note + ")").str();
  }
  return list;
}

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

/// A layer that should be patched has no plan: its verdict is rejected or undecided. The handler
/// received the reasons as diagnostics; without a handler they are the error's text.
class VerdictAgainst : public llvm::ErrorInfo<VerdictAgainst> {
public:
  static char ID;
  explicit VerdictAgainst(std::string reasons) : reasons(std::move(reasons)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string reasons; ///< empty if a handler received them
};

} // namespace ctxc

#endif // CTXC_SESSION_OPTIONS_H
