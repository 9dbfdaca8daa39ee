//===- Model.h - the library's entry: a model, and all calls on it --------===//
//
//   auto model = ctxc::Model::load("gemma-3-270m");  // a directory, .gguf or .mlir
//   auto tokens = (*model)->tokenize("And David said");
//   auto context = (*model)->context(*tokens);       // reads the context once
//   auto step = context->patch();                    // of the last token
//   auto result = (*model)->verify({*tokens});       // the patched run against the full run
//
// A model owns all that it needs: MLIR's context, the module as it was imported, the checkpoint,
// its weights, the program, the tokenizer and the executor. Each is made on first use and then
// kept: a check compiles nothing, and the tokenizer can be used without reading weights.
//
// Lifetime: what a call returns by reference lives as long as the model. Contexts, executors and
// their runs must not outlive it.
//
// Threads: models are independent of each other, even those that share weights (reopen), and each
// may be used in a thread of its own. One model is used by one thread at a time: a call during
// another thread's call is refused with an error.
//
// Nothing here prints, exits, or changes process-wide state, with one exception: if ranks share a
// model, a rank that loses the others ends with them (Ranks.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_MODEL_H
#define CTXC_SESSION_MODEL_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Distil/Distil.h"
#include "ctxc/Distil/Entries.h"
#include "ctxc/Distil/Examples.h"
#include "ctxc/Distil/Sample.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Inspect/Inspect.h"
#include "ctxc/Planning/ModelVerdict.h"
#include "ctxc/Program/Executor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/RankFacts.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Report/CostReport.h"
#include "ctxc/Report/VerifyReport.h"
#include "ctxc/Session/Compile.h"
#include "ctxc/Session/Options.h"
#include "ctxc/Tokenizer/ChatTemplate.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "ctxc/Verify/Sink.h"
#include "ctxc/Verify/Verify.h"
#include "mlir/IR/MLIRContext.h"
#include <atomic>
#include <map>
#include <memory>
#include <thread>

namespace ctxc {

class Context;
struct ImportedModel;
struct JointCheck; // of Distil/Joint.h, as all that is joint
struct JointPatch;
struct JointRequest;
class JointRun;
struct JointVerification;

/// Positions that a reduced run keeps.
struct KeptTokens {
  std::vector<int64_t> positions; ///< ascending
  std::string why;                ///< a clause; empty where nothing is kept
  std::optional<Sink> sink;       ///< what the last token would be in a run that keeps nothing
};

/// What texts begin with.
struct TextFront {
  std::vector<int64_t> every;         ///< every text: what the tokenizer puts in front
  std::vector<int64_t> conversations; ///< every conversation: what the chat template writes
};

class ShardedExecutor;

class Model {
public:
  /// Reads `path`: a Hugging Face directory, a GGUF file, or an .mlir file. Errors: it cannot be
  /// read or imported (all problems together); OptionError.
  static llvm::Expected<std::unique_ptr<Model>> load(llvm::StringRef path,
                                                     LoadOptions options = {});
  /// A model whose tensors are in the caller's memory (Checkpoint::fromMemory), which must outlive
  /// it: `config` is the text of a config.json, messages begin with `name`.
  static llvm::Expected<std::unique_ptr<Model>> load(llvm::StringRef name, llvm::StringRef config,
                                                     llvm::ArrayRef<MemoryTensor> tensors,
                                                     LoadOptions options = {});
  /// The same stored model with other options. The two models share weights in memory; if `options`
  /// has no diagnostic handler or dialects, this model's are used.
  llvm::Expected<std::unique_ptr<Model>> reopen(LoadOptions options) const;
  ~Model();

  /// As it was given to load.
  llvm::StringRef name() const { return path; }
  const LoadOptions &options() const { return settings; }
  /// The module as it was imported; plans change a copy of it.
  mlir::ModuleOp module() const { return *imported; }
  /// The checkpoint that weights come from; null if the model has no weights, or random ones.
  const Checkpoint *checkpoint() const { return weightCheckpoint.get(); }
  /// Whether its output is the last hidden state, and no logits of tokens.
  bool isHeadless() const;
  /// The common storage type of all weights, "bf16" or "f16"; "f32" if they have no common type.
  llvm::StringRef storage() const;
  const SetupTimes &times() const { return setup; }
  /// Why what was read of an exported program was not compared with PyTorch's numbers; empty if it
  /// was, or if there is nothing to compare with, as for a checkpoint.
  llvm::StringRef notCompared() const { return whyNotCompared; }
  /// The diagnostics since the last call; empty if a handler takes them.
  std::vector<ModelDiagnostic> takeDiagnostics();
  /// The line at a place of the program, as the program quotes it, or of the .mlir file while that
  /// is read; empty where there is none.
  std::string lineOf(const Place &place);

  //===--- Structure: no weights are read ---------------------------------===//

  /// The verdicts on all layers from the start layer on, equal ones together. Errors: OptionError.
  llvm::Expected<std::vector<VerdictGroup>> check();
  /// The verdict on the model as a whole, given the verdicts on its layers, which `check` returned:
  /// it says whether the context reaches the logits only through patched layers. None if the module
  /// has blocks but no model.
  llvm::Expected<std::optional<ModelVerdict>> judge(llvm::ArrayRef<VerdictGroup> groups);
  /// The complete planning options, with the blocks' parameter names, measure and refutation.
  llvm::Expected<ModelOptions> planning();
  /// Whether some plan patches the scale of a post-norm, where the updates differ.
  llvm::Expected<bool> updatesDiffer();
  /// Whether some plan splits a change over the experts of a mixture.
  llvm::Expected<bool> splitsMixtures();

  /// The model with its plans, ready to run or to compile. Errors: VerdictAgainst; OptionError;
  /// no op reads the context; a block cannot be built. A module of blocks without an xf.model
  /// gives a program without steps.
  llvm::Expected<const Program &> program();
  /// The same in `copy`, for every verdict: layers without a successful verdict are not patched. It
  /// is used to count costs. Errors: OptionError; there is no xf.model.
  llvm::Expected<Program> programInAnyCase(mlir::OwningOpRef<mlir::ModuleOp> &copy);
  /// The program's module, with the dual and the applied block of every plan.
  llvm::Expected<mlir::ModuleOp> plannedModule();
  /// Fails if an op has no numerics, that is, if only the analyses know it.
  llvm::Error checkNumerics();

  //===--- Code for this machine or another: no weights are read ----------===//

  /// The kernels of the program as code. Errors: those of checkCompileOptions, checkNumerics and
  /// program(); a block has no compiled form; the GPU supports none of the kernels (each kernel
  /// that it does not support gives a warning, and is left out).
  llvm::Expected<CompiledCode> compile(const CompileOptions &options);
  /// What a token costs on a GPU with the kernels that compile would give. Errors: the same.
  llvm::Expected<TokenCosts> cost(const CompileOptions &options, const CostOptions &at);

  //===--- Running --------------------------------------------------------===//

  /// The model's weights. Errors: the model has no weights.
  llvm::Expected<Weights &> weights();
  /// The identity of the weights: Checkpoint::hash(), or the seed.
  llvm::Expected<std::string> hash();
  /// The executor of the options' engine. Errors: those of program() and weights(); a block has no
  /// compiled form; the engine is not available on this machine.
  llvm::Expected<Executor &> executor();
  /// Another executor of the same program and weights, for a comparison.
  llvm::Expected<std::unique_ptr<Executor>> makeExecutor(Engine engine);
  /// On a rank other than 0 (LoadOptions::ranks): computes what rank 0's model asks for, until
  /// rank 0 ends; returns rank 0's exit code.
  llvm::Expected<int> serve();
  /// What each rank holds and has sent. Empty if there are no ranks.
  llvm::Expected<std::vector<RankFacts>> rankFacts();
  /// Norms of the parameters that patches change.
  llvm::Expected<PatchNorms &> norms();

  /// What the reduced run of `tokens` keeps if nobody says what: the tokens that stand in front of
  /// every conversation, or the first one, where the text begins with no token that every text has,
  /// and the first token of a run is attention's sink (Sink.h). Otherwise nothing. `front` are the
  /// tokens that texts of this kind begin with, for a model without a tokenizer and a template; the
  /// executor measures, unless `measure` does.
  llvm::Expected<KeptTokens> keptByDefault(llvm::ArrayRef<Input> tokens,
                                           const TextFront &front = {},
                                           MeasureLengths measure = nullptr);

  /// Reads a context, which can then be extended, forked and patched: tokens at positions from 0
  /// on, of which the reduced run keeps those at `kept` (ascending, before the last).
  llvm::Expected<Context> context(llvm::ArrayRef<Input> tokens, std::vector<int64_t> kept = {});
  llvm::Expected<Context> context(llvm::ArrayRef<int64_t> tokens, std::vector<int64_t> kept = {});

  /// The patch of the last token, with the tokens before it as context (ctxc::makePatch). This call
  /// and the calls below set the request's start layer from the options.
  llvm::Expected<PatchStep> patch(RunRequest request, RunTimes *times = nullptr);
  /// The patch of each of `request.positions`, made in one pass (ctxc::makePatches).
  llvm::Error positions(RunRequest request, PatchSink sink, RunTimes *times = nullptr);
  /// The metadata that a patch of the token at `position` has in a file.
  llvm::Expected<PatchMetadata> metadata(const RunRequest &request, int64_t position);

  /// Generates up to `count` tokens with the full run, till it ends its text (stopTokens), and
  /// verifies the patch of each (ctxc::verify). If
  /// the request has positions, verifies the prompt's tokens there instead (ctxc::verifyEach).
  llvm::Expected<VerifyResult>
  verify(RunRequest request, int64_t count = 1, StepObserver observe = [](const VerifyStep &) {});
  /// Verifies patches that came from elsewhere for the request's positions.
  llvm::Expected<VerifyResult> verify(RunRequest request, PatchSource stored, StepObserver observe);
  /// Verifies a patch that came from elsewhere for the last token (ctxc::verifyPatch).
  llvm::Expected<VerifyResult> verify(RunRequest request, const Patch &patch);
  /// How a verification is set up, for reports on it.
  llvm::Expected<VerifySettings> verifySettings();

  /// Warns once if `tokens` tokens are more than a model with rotary positions was made for. The
  /// functions of this class call it themselves.
  void warnOfLength(int64_t tokens);

  /// What the context did to a token's weights (ctxc::inspect).
  llvm::Expected<Inspection> inspect(InspectRequest request);

  //===--- Contexts that last ---------------------------------------------===//

  /// Fits an adapter that stands for the request's context (ctxc::distil). Runs on compiled
  /// kernels, over weights in float32 (LoadOptions::storage).
  llvm::Expected<Distilled> distil(const DistilRequest &request);
  /// The same with as many virtual entries as the context needs (ctxc::chooseEntries).
  llvm::Expected<ChosenEntries> chooseEntries(const DistilRequest &request);
  /// One patch that is exact for all tokens of some texts, and how the patched model reads them
  /// (ctxc::patchJointly, ctxc::checkJointly); one that grows while the model generates `count`
  /// tokens (ctxc::verifyJointly), or with a text that a caller gives token by token
  /// (JointRun::start); for how many tokens there can be one (ctxc::jointCapacity). Run on compiled
  /// kernels, over weights of any type.
  llvm::Expected<JointPatch> patchJointly(const JointRequest &request);
  llvm::Expected<JointCheck> checkJointly(const Adapter &adapter, const JointRequest &request);
  llvm::Expected<JointVerification> verifyJointly(const JointRequest &request, int64_t count,
                                                  StepObserver observe);
  llvm::Expected<JointRun> jointRun(const JointRequest &request, int64_t most,
                                    bool comparesControl);
  llvm::Expected<int64_t> jointCapacity();
  /// The shapes of virtual entries. Errors: those of ctxc::shapesOfEntries; transformers' cache
  /// holds something else than a key and a value of each head of keys.
  llvm::Expected<VirtualEntries> shapesOfEntries(int64_t count);
  /// The places of the tokens of a context that stay in front of texts beside an adapter
  /// (ctxc::mostTelling). Runs as distil does.
  llvm::Expected<std::vector<int64_t>> mostTelling(llvm::ArrayRef<int64_t> context, int64_t front,
                                                   int64_t count,
                                                   llvm::ArrayRef<TextSequence> texts = {});
  /// The same by what attention reads of each token (ctxc::readScores).
  llvm::Expected<std::vector<int64_t>> mostRead(llvm::ArrayRef<int64_t> context, int64_t front,
                                                int64_t count, llvm::ArrayRef<TextSequence> texts);
  /// What chooses them, of each token of the context (ctxc::tellingScores, ctxc::readScores). Runs
  /// as distil does.
  llvm::Expected<std::vector<double>> tellingScores(llvm::ArrayRef<int64_t> context, int64_t front,
                                                    llvm::ArrayRef<TextSequence> texts);
  llvm::Expected<std::vector<double>> readScores(llvm::ArrayRef<int64_t> context, int64_t front,
                                                 llvm::ArrayRef<TextSequence> texts);
  /// Texts that the model writes after a context, many at once (ctxc::sample). Runs as patchJointly
  /// does.
  llvm::Expected<Sampled> sample(const SampleRequest &request);
  /// Fails where there is too little memory for evaluate: before what is to be evaluated is fitted
  /// (ctxc::checkRoomToEvaluate).
  llvm::Error checkRoomToEvaluate(const EvaluateRequest &request);
  /// What attention keeps of the adapter's prefix (ctxc::prefixCache), and whether that can be
  /// said. Run as distil does.
  llvm::Expected<std::vector<KeysAndValues>> prefixCache(const Adapter &adapter);
  llvm::Error checkPrefixCache();
  /// How well an adapter replaces a context (ctxc::evaluate). Runs as distil does.
  llvm::Expected<Card> evaluate(const Adapter &adapter, const EvaluateRequest &request);
  /// The same for several adapters, by the texts of `judge`, which must not outlive the model.
  llvm::Expected<Card> evaluate(const Adapter &adapter, Judge &judge);
  /// What the model answers with the context, with an adapter, and without (ctxc::examples). Runs
  /// as distil does.
  llvm::Expected<std::vector<Example>> examples(const Adapter &adapter,
                                                const EvaluateRequest &request, size_t count,
                                                int64_t length, llvm::ArrayRef<int64_t> stops);

  //===--- Text -----------------------------------------------------------===//

  bool hasTokenizer() const;
  /// Errors: the model has none, or one that cannot be read.
  llvm::Expected<Tokenizer &> tokenizer();
  /// The tokens of a text, with the special tokens that the tokenizer adds around it.
  llvm::Expected<std::vector<int64_t>> tokenize(llvm::StringRef text);
  /// The tokens of a text that follows other text: without special tokens around it.
  llvm::Expected<std::vector<int64_t>> tokenizeInside(llvm::StringRef text);
  /// The special tokens that the tokenizer puts in front of every text.
  llvm::Expected<std::vector<int64_t>> tokensInFront();
  /// The tokens after which the model generates no other: generation_config.json's eos_token_id, or
  /// without that file config.json's; of a GGUF file, those at which llama.cpp ends. Empty for a
  /// model that is no checkpoint. Errors: a file cannot be read.
  llvm::Expected<std::vector<int64_t>> stopTokens();
  /// The tokens of a conversation as the checkpoint's chat template writes it, up to the beginning
  /// of the answer. `tools` is a list of what the model may call, or None. Errors: there is no
  /// template; it refuses the messages.
  llvm::Expected<std::vector<int64_t>> chat(llvm::ArrayRef<ChatMessage> messages,
                                            const jinja::Value &tools = jinja::Value::none());
  /// Whether there is a template that can be read.
  bool hasChatTemplate();
  /// The positions in chat(messages) that do not depend on the first message, which is the system
  /// message: the longest prefix and suffix that the tokens share with those for another system
  /// message, and for none (if the template allows this). If a run keeps them, the patch absorbs
  /// the rest. Error: the template ignores system messages.
  llvm::Expected<std::vector<int64_t>> positionsBesideSystem(llvm::ArrayRef<ChatMessage> messages);
  /// Names tokens by the tokenizer if there is one, which must not outlive this model, otherwise by
  /// id. A tokenizer that cannot be read gives a warning.
  TokenName tokenName();

private:
  friend class Context;
  class Use;
  struct Running;
  struct Measuring;
  struct Shared;
  struct InMemory;
  struct Split;

  Model(std::string path, LoadOptions options);
  llvm::Error import();
  llvm::Error compareWithSource(const ImportedModel &read);
  llvm::Expected<ImportedModel> importModule();
  llvm::Error withoutWeights(llvm::Error missing);
  llvm::Error checkNumerics(mlir::ModuleOp module);
  /// Whether a file describes the model, and weights come from elsewhere.
  bool isText() const;
  llvm::Expected<const Program &> programOfSteps();
  llvm::Expected<std::string> tokenizerPath() const;
  llvm::Error completeNames(ModelOptions &options) const;
  llvm::Error plan();
  mlir::LogicalResult measure(xf::BlockOp block, const PlanOptions &options,
                              PlanCandidate &candidate) const;

  void addSourceLines(ModelDiagnostic &diagnostic);
  void handle(ModelDiagnostic diagnostic);
  std::string takeErrorTexts();
  llvm::Error withDiagnostics(llvm::Error error);
  llvm::Expected<Use> use();
  llvm::Expected<VerifyResult>
  withPooled(Executor &executor, const RunRequest &request,
             llvm::function_ref<llvm::Expected<VerifyResult>(const RunRequest &)> verify);
  llvm::Expected<Executor &> runner(); ///< which may have no patches of one token
  llvm::Expected<Running> running();
  llvm::Expected<Measuring> measuring();
  llvm::Expected<std::unique_ptr<Executor>> makeExecutor(Engine engine, const Program &program,
                                                         Weights &numbers, bool hasPieces);
  llvm::Expected<SplitModel> splitModel(bool isAddedTo);
  template <typename Function>
  auto withSplit(Function function, bool isAddedTo = true)
      -> decltype(function(std::declval<SplitModel>()));
  template <typename Function> llvm::Error checkSplit(Function function);
  llvm::Expected<ShardedExecutor &> sharded();

  std::string path;
  LoadOptions settings;
  std::shared_ptr<const InMemory> inMemory; ///< the tensors in the caller's memory, or null
  mlir::DialectRegistry dialects;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::vector<ModelDiagnostic> collected; ///< the diagnostics that no handler took
  bool isReading = false;                 ///< an .mlir file is being parsed and verified
  std::optional<std::string> readText;    ///< the text of that file
  std::map<std::pair<std::string, unsigned>, std::string> sourceLines; ///< ImportedModel's

  mlir::OwningOpRef<mlir::ModuleOp> imported, planned;
  /// The model's own checkpoint (null without weights), and the one that weights come from: the
  /// same, or WeightSource::checkpoint.
  std::shared_ptr<Checkpoint> modelCheckpoint, weightCheckpoint;
  DType storageType = DType::F32;
  std::string whyNotCompared;
  bool isReopened = false;               ///< from a model that was compared
  std::optional<ModelOptions> completed; ///< what planning() gives
  std::optional<bool> hasNormUpdate;
  Program runnable; ///< of `planned`
  std::string planText;
  std::string onlyJoint; ///< why patches of one token are not made; empty if they are
  int64_t patchedLayers = 0;

  std::shared_ptr<Shared> shared; ///< among all models that were reopened from one
  std::unique_ptr<Executor> mainExecutor;
  bool isWarnedOfLength = false;
  std::unique_ptr<PatchNorms> parameterNorms;
  std::unique_ptr<Split> split; ///< for distil and evaluate
  std::unique_ptr<Tokenizer> pieces;
  std::optional<std::vector<int64_t>> knownStops;
  llvm::Expected<std::vector<int64_t>> readStopTokens();
  std::optional<TextFront> knownFront;
  const TextFront &textFront();
  std::optional<std::optional<Sink>> knownSink;
  llvm::Expected<std::optional<Sink>> sink(MeasureLengths measure);
  llvm::Error openChatTemplate();
  std::optional<ChatTemplate> chatTemplate;
  std::tm chatTime = {}; ///< what the template sees as now
  SetupTimes setup;

  std::atomic<std::thread::id> user{}; ///< the thread that a call is running in
  unsigned depth = 0;                  ///< of that thread's calls
};

/// Registers every dialect, and every external model of an interface, that a Model has besides
/// LoadOptions::dialects.
void registerModelDialects(mlir::DialectRegistry &dialects);

/// The type of all floating-point tensors of the checkpoint, F32 for F64; none if they have several
/// types, or some are quantised, so that each weight keeps its own.
std::optional<DType> storedType(const Checkpoint &checkpoint);

} // namespace ctxc

#endif // CTXC_SESSION_MODEL_H
