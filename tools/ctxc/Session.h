//===- Session.h - from MODEL and options to something that runs ----------===//
//
// What the subcommands that run a model have in common: import, weights, plan,
// executor, tokenizer, and the options that steer them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_CTXC_SESSION_H
#define CTXC_TOOLS_CTXC_SESSION_H

#include "CommandLine.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Report/VerifyReport.h"
#include "ctxc/Runtime/Program.h"
#include "ctxc/Runtime/Weights.h"
#include "ctxc/Tokenizer/Tokenizer.h"

namespace ctxc::driver {

/// A verdict against, already told on stderr: exit code 1.
class VerdictAgainst : public llvm::ErrorInfo<VerdictAgainst> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override { os << "a block has no plan"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

/// Every dialect and every model of an interface that the driver needs, and those of the
/// plugins that loadDialectPlugins loaded.
mlir::DialectRegistry allDialects();

/// Loads the files of every --load-dialect-plugin among `words`, and removes the option.
llvm::Error loadDialectPlugins(std::vector<llvm::StringRef> &words);

/// Has the context's diagnostics printed to stderr in the driver's form; those without a place
/// as the `model`'s.
void printDiagnostics(mlir::MLIRContext &context, llvm::StringRef model);

/// The storage types of weights that --dtype names, and the one that `name` is.
std::vector<llvm::StringRef> storageNames();
DType storageNamed(llvm::StringRef name);

/// The common storage type of all floating tensors, as --dtype names it: bf16 or f16 where all are
/// that, else f32; "" (as it is) where some are quantised.
std::string storedType(const Checkpoint &checkpoint);

/// --sites, --objective, --plan.
std::vector<OptionSpec> planOptions();

/// Those, and --update, --dtype, --round-prompts, --start-layer, --keep, --backend, --target,
/// --threads, --weights.
std::vector<OptionSpec> runOptions();

/// The values of runOptions().
struct RunOptions {
  static llvm::Expected<RunOptions> parse(const Arguments &arguments);

  std::string update = "least", dtype, backend, weights;
  std::string gpu; ///< the target to run on; empty: this processor
  bool updateGiven = false;
  SiteScope scope = SiteScope::MLP;
  std::optional<xf::Split> split; ///< where given
  Objective objective = Objective::Default;
  llvm::SmallVector<std::string> parameters; ///< of --plan
  int64_t startLayer = 0, threads = 0;
  bool roundedPrompts = false;
  std::vector<int64_t> kept;
  bool quiet = false; ///< the importer's warnings were told by another session
};

class Session {
public:
  /// What is to be done with a model: some of it needs less than all.
  enum class Use {
    Read,    ///< its blocks, as they are
    Patch,   ///< its blocks, and those of their plans
    Compile, ///< their kernels, which take weights later
    Run
  };
  /// Imports MODEL and plans its blocks, as far as the use needs that. VerdictAgainst where a
  /// block that is to be patched has no plan; its diagnostics are then on stderr. An error where
  /// a block that is to be run or compiled has an op without numerics.
  static llvm::Expected<std::unique_ptr<Session>> plan(llvm::StringRef model, RunOptions options,
                                                       Use use);

  /// As above, with weights and an executor. `sharing` is a session of the same model, storage
  /// type and --weights, whose weights this one reads too, and which must outlive it.
  static llvm::Expected<std::unique_ptr<Session>> open(llvm::StringRef model, RunOptions options,
                                                       Session *sharing = nullptr);

  /// Fails where an option on planning applies to nothing in the module.
  llvm::Error checkPlanOptions();
  ModelOptions getModelOptions() const;

  mlir::ModuleOp module() { return *imported.module; }
  const Program &getProgram() const { return program; }

  Executor &executor() { return *mainExecutor; }
  /// Another executor of the same program, for a trace.
  llvm::Expected<std::unique_ptr<Executor>> makeExecutor(llvm::StringRef backend);
  PatchNorms &norms() { return *parameterNorms; }
  Weights &getWeights() { return *weights; }
  /// The checkpoint that the weights come from; null for random ones.
  Checkpoint *checkpoint() {
    return weightsCheckpoint ? weightsCheckpoint.get() : imported.checkpoint.get();
  }
  const SetupTimes &times() const { return setup; }

  /// The checkpoint's tokenizer; an error where it has none.
  llvm::Expected<Tokenizer *> tokenizer();
  /// Gives back the memory that the tokenizer needs for texts, until the next one.
  void restTokenizer();
  /// Names tokens by their pieces where there is a tokenizer, else by id.
  TokenName tokenName();

  /// The settings as far as they are the session's.
  VerifySettings settings() const;

private:
  Session() = default;
  llvm::Error import(bool needWeights);
  llvm::Error checkNumerics();
  llvm::Error checkPlanNames();
  mlir::LogicalResult measure(xf::BlockOp block, const PlanOptions &planOptions,
                              PlanCandidate &candidate) const;
  llvm::Error loadWeights();
  llvm::Error identifyWeights();
  llvm::Error planBlocks();

  RunOptions options;
  std::string path;
  std::unique_ptr<mlir::MLIRContext> context;
  ImportedModel imported;
  std::unique_ptr<Checkpoint> weightsCheckpoint; ///< of --weights DIR
  std::unique_ptr<Weights> ownWeights;
  Weights *weights = nullptr; ///< its own, or those of the session that shares them
  Program program;
  std::unique_ptr<PatchNorms> parameterNorms;
  std::unique_ptr<Executor> mainExecutor;
  std::unique_ptr<Tokenizer> pieces;
  SetupTimes setup;
  std::string planText, modelHash;
  int64_t patchedLayers = 0;
  bool hasNormUpdate = false; ///< set by checkPlanOptions
};

/// Integers separated by commas or white space; `@FILE` reads them from FILE.
/// `what` leads messages.
llvm::Expected<std::vector<int64_t>> parseIntegers(llvm::StringRef text, llvm::StringRef what);

/// As above, and ranges: "0-3,7".
llvm::Expected<std::vector<int64_t>> parsePositions(llvm::StringRef text, llvm::StringRef what);

/// Fails where a file at `path` could not be written: for saying so before the
/// work and not after it.
llvm::Error checkWritable(llvm::StringRef option, llvm::StringRef path);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_SESSION_H
