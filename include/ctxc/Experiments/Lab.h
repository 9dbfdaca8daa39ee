//===- Lab.h - the paper's experiments, and the input of each -------------===//
//
// An experiment is a function that opens models as it needs them and writes records. It knows
// nothing of command lines, files or plots: `ctxc experiment` gives it a Lab, and the script
// tools/plot_experiment.py draws what it wrote. A new one is a file here, a line in Registry.cpp,
// and a module under tools/plots.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EXPERIMENTS_LAB_H
#define CTXC_EXPERIMENTS_LAB_H

#include "ctxc/Experiments/Progress.h"
#include "ctxc/Experiments/Records.h"
#include "ctxc/Numerics/Update.h"
#include "ctxc/Session/Model.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <string>
#include <vector>

namespace ctxc::experiments {

/// How a model is opened. Options that may differ between runs of an opened model (the start layer,
/// materialised patches, kept tokens) are not here.
struct Setting {
  std::string dtype;                ///< f32, bf16 or f16: the storage type; "": as in the file
  std::string update = "least";     ///< a name of ctxc/Numerics/Updates.def
  std::string backend = "compiled"; ///< or reference: float64
  std::string sites = "mlp";        ///< or all
  std::string plan = {}; ///< names of parameters, separated by commas; "": the default plan
  int64_t threads = 0;   ///< 0: the command's own --threads
};

/// The model of an experiment, opened with a setting and ready to run.
class ReadyModel {
public:
  /// Makes everything that an experiment uses. Errors: those of Model::executor and Model::norms.
  static llvm::Expected<std::unique_ptr<ReadyModel>> create(std::unique_ptr<Model> model);

  Executor &executor() const { return *computes; }
  PatchNorms &norms() const { return *parameterNorms; }
  const Program &program() const { return *runs; }
  Weights &weights() const { return *numbers; }

private:
  ReadyModel() = default;
  std::unique_ptr<Model> model;
  Executor *computes = nullptr;
  PatchNorms *parameterNorms = nullptr;
  const Program *runs = nullptr;
  Weights *numbers = nullptr;
};

/// A context and the token after it, at positions from 0 on.
struct Prompt {
  std::string text; ///< as it was given
  std::vector<int64_t> tokens;
  std::vector<int64_t> kept = {}; ///< positions that the reduced run keeps (Model::keptByDefault)
};

/// An experiment's own options that were given, by name.
using OptionValues = llvm::StringMap<std::string>;

/// The input of an experiment, and where it writes.
struct Lab {
  Model &model; ///< the model, planned with the default options
  Records &records;
  Progress &progress;
  std::string directory; ///< of the records, for files beside them
  std::vector<Prompt> prompts;
  int64_t generate = 0; ///< tokens to generate after each prompt
  std::vector<std::string> dtypes, updates;
  OptionValues options;
  TokenName tokenName;
  std::string hash; ///< of the model, as in its patch files: Model::hash
  int64_t layers = 0;
  bool isBidirectional = false;

  /// Opens the model with a setting. Weights are shared in memory and kernels cached on disk, so
  /// that opening again is cheap.
  llvm::Expected<std::unique_ptr<ReadyModel>> open(const Setting &setting) const;
  /// The same without what runs it.
  llvm::Expected<std::unique_ptr<Model>> openModel(const Setting &setting) const;

  llvm::StringRef option(llvm::StringRef name, llvm::StringRef otherwise) const {
    auto found = options.find(name);
    return found == options.end() ? otherwise : llvm::StringRef(found->second);
  }
};

/// An option of a single experiment.
struct ExperimentOption {
  llvm::StringRef name;  ///< "judge"
  llvm::StringRef value; ///< the placeholder for its value in help
  llvm::StringRef help;
};

struct Experiment {
  llvm::StringRef name;
  llvm::StringRef paper;    ///< "figures 1 and 2", "not in the paper"
  llvm::StringRef summary;  ///< a clause; may have several lines
  bool takesPrompts = true; ///< false: it has inputs of its own
  int64_t generate = 20;    ///< tokens for each prompt, unless the caller says otherwise
  std::vector<llvm::StringRef> dtypes = {"f32", "bf16"};
  std::vector<llvm::StringRef> updates{std::begin(updateNames), std::end(updateNames)};
  std::vector<ExperimentOption> options = {};
  /// Checks the experiment's own options before anything is written; null: there is nothing to
  /// check.
  llvm::Error (*check)(const OptionValues &options) = nullptr;
  llvm::Error (*run)(Lab &lab) = nullptr;
};

/// All experiments, in the order of the help.
llvm::ArrayRef<Experiment> experiments();
const Experiment *findExperiment(llvm::StringRef name);

/// The paper's five prompts (section "Setup" and appendix "Additional Prompts").
llvm::ArrayRef<llvm::StringLiteral> paperPrompts();

/// Five made-up prompts of 12 token ids, for models without a tokenizer.
std::vector<std::vector<int64_t>> madeUpPrompts(int64_t vocabulary);

/// A record's key: "prompt=0 dtype=f32 update=least step=3".
std::string key(llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> parts);

/// The members "position", "token", "text", "next", "nextText" of a record.
llvm::json::Object tokenJson(const Lab &lab, int64_t position, int64_t token, int64_t next);

/// The norms of all layers together: matrixNorm, matrixRelative, vectorNorm, vectorRelative.
llvm::json::Object normJson(const PatchNorm &norm);

/// The members of a record about a step's patched run: metricsJson, normJson, the largest
/// replayError of a layer, and how many divisors were harmful zeros.
llvm::json::Object patchedJson(const VerifyStep &step);

/// Whether adding a patch to weights of this type loses digits that float32 keeps.
bool roundsPatches(llvm::StringRef dtype);

/// Continues a prompt greedily: its tokens, then `count` − 1 generated ones, so that each of the
/// `count` last tokens has something to predict. Stops where there is no largest logit.
llvm::Expected<std::vector<int64_t>> continueGreedily(Executor &executor, const Prompt &prompt,
                                                      int64_t count);

/// The patches of the last `count` of `tokens`, each for the tokens before it without those that
/// are kept. They are made in one pass (ctxc::makePatches); in a bidirectional model only that of
/// the last token.
llvm::Error patchLast(Executor &executor, llvm::ArrayRef<int64_t> tokens,
                      llvm::ArrayRef<int64_t> kept, int64_t count,
                      llvm::function_ref<llvm::Error(int64_t position, const Patch &patch,
                                                     llvm::ArrayRef<LayerObligations> obligations,
                                                     llvm::ArrayRef<double> replayError)>
                          sink);

} // namespace ctxc::experiments

#endif // CTXC_EXPERIMENTS_LAB_H
