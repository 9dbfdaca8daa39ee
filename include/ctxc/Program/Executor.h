//===- Executor.h - what runs a model: compiled kernels, or the reference -===//
//
// The only interface between the algorithms (verify, patch, trace) and the code that runs the
// model. A *run* is one sequence of tokens going through the model: it owns the state that
// contextual ops keep of earlier tokens (the KV cache), by absolute position. An executor computes
// steps of runs. Wherever this file says token, a run may be given an embedding instead (Input.h).
//
// The interface passes numbers as double: the compiled executor computes in float32
// and the reference in float64, and double holds both exactly. Logits have the type that
// they were computed in, except those of forward and readHead.
//
// Ownership. The caller owns the runs. A run belongs to the executor that started
// it and must not be used after that executor is destroyed; every other executor
// refuses it with an error.
//
// Threads. Executors share no writable state: each may be used in its own thread, even if they
// share a program, weights, or an MLIR context that has not disabled multithreading. If they share
// a program, they must be created one after the other, since creating one may add blocks to its
// module. One executor takes one call at a time: while a call is under way, a call from another
// thread or from an observer is refused with an error; a PatchSink may call the executor that calls
// it. A run is used by one thread at a time, together with its executor.
//
// Cancelling. If the executor's interrupt (setInterrupt) returns true, the call ends early with an
// error of type Cancelled, and the run is as it was before the call.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_EXECUTOR_H
#define CTXC_PROGRAM_EXECUTOR_H

#include "ctxc/Program/Input.h"
#include "ctxc/Program/Logits.h"
#include "ctxc/Program/Patch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace ctxc {

class Weights;

/// The tokens whose state a run keeps.
enum class Keeps {
  /// All tokens. A recurrence's state is kept only for the run's size before its last call and
  /// behind it: a run that is truncated to another size reads tokens again in its next call. It
  /// cannot do so if they were read with a patch, or on several ranks.
  All,
  /// In a layer whose attention has a window, and in one of convolutions, only the tokens that
  /// later ones can see, so that memory does not grow with the run. Such a run can be truncated
  /// only to its size before its last call or to 0, and can be the reduced run only of tokens
  /// behind its last one. A call that needs dropped state returns an error. An executor may keep
  /// more.
  Seen
};

/// The state of one run. Made by Executor::start, and usable only by that executor.
class Run {
public:
  virtual ~Run() = default;
  /// How many tokens' state it holds.
  virtual int64_t size() const = 0;
  /// Forgets the state of all but the first `count` tokens.
  virtual void truncate(int64_t count) = 0;
  Keeps keeps() const { return kept; }

private:
  friend class Executor;
  Keeps kept = Keeps::All;
  uint64_t executor = 0; ///< the number of the executor that started it; 0: none did
};

/// A call that its executor's interrupt ended.
class Cancelled : public llvm::ErrorInfo<Cancelled> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override { os << "the call was cancelled"; }
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(std::errc::operation_canceled);
  }
};

/// Sees a layer's output, a matrix with one row for each token: called in layer order, with the
/// layer's index among the patchable layers (0 = first), −1 for the embedding.
using LayerObserver =
    std::function<void(int64_t layer, llvm::ArrayRef<double> rows, int64_t rowCount)>;

struct ForwardOptions {
  const Patch *patch = nullptr; ///< applied to every token of this call
  /// Add the patch to the weights, round them to their storage type, and run the ordinary forward
  /// on them; otherwise compute W z + u (vᵀ z).
  bool materialize = false;
  bool append = true;     ///< keep these tokens' state in the run
  bool allLogits = false; ///< logits of every token, not only the last
  LayerObserver observer;
};

struct PatchOptions {
  int64_t startLayer = 0; ///< layers before it are left unpatched
  bool materialize = false;
  bool logits = true; ///< false: only the index of the largest logit is returned
  /// False: the reduced run's logits are not needed. If the head is a separate step
  /// (Program::head), the compiled executor then leaves it out.
  bool reducedHead = true;
  LayerObserver fullObserver, reducedObserver;
};

/// Tokens that go through one step of a program (Executor::runStep).
struct StepRows {
  size_t step = 0;
  llvm::ArrayRef<int32_t> tokens, positions; ///< one for each row; positions increase
  /// The values that the step's layer reads, in its order: a row of float32 numbers for each token.
  llvm::SmallVector<const std::vector<float> *> inputs;
  /// Other numbers in the place of the executor's; null: the executor's own. On this processor
  /// alone.
  Weights *weights = nullptr;
};

/// How often a layer's obligations failed for one token.
struct LayerObligations {
  int64_t harmless = 0; ///< 0/0: no change was needed, and none was made
  int64_t harmful = 0;  ///< a zero divisor replaced by 1: the patch is not exact
};

/// The result of one step of Algorithm 1.
struct PatchStep {
  Patch patch;
  Logits fullLogits;                         ///< of the run with context
  Logits reducedLogits;                      ///< of the reduced run in which the patch was made
  int64_t fullNext = -1, reducedNext = -1;   ///< the index of the largest, the lowest of equals;
                                             ///< −1 where it was not computed
  std::vector<LayerObligations> obligations; ///< one for each layer
  /// Predicted replay error of each layer's output, in units of that output
  /// (docs/updates.md); one for each layer, 0 if the layer is not patched.
  std::vector<double> replayError;
};

struct PatchEachOptions {
  int64_t startLayer = 0; ///< layers before it are left unpatched
  bool logits = false;    ///< also compute the logits of both runs for every token
  /// How many tokens go through the layers together; 0: as many as keep memory in bounds. The
  /// patches do not depend on it.
  int64_t chunk = 0;
};

/// The result of Executor::patchEach for one token.
struct TokenPatch {
  int64_t token = 0, position = 0;           ///< the token is −1 for an embedding
  Logits fullLogits, reducedLogits;          ///< as in PatchStep; empty unless asked for
  std::vector<LayerObligations> obligations; ///< one for each layer
  std::vector<double> replayError;           ///< as in PatchStep
  /// Makes the patch from memory that is reused after the sink's call.
  llvm::function_ref<llvm::Expected<Patch>()> patch;
};

/// Receives the tokens' patches in order, as they are made; it may use the executor for other runs.
/// An error ends the pass.
using PatchSink = llvm::function_ref<llvm::Error(const TokenPatch &)>;

class Executor {
public:
  Executor();
  virtual ~Executor() = default;
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// An empty run with room for `capacity` tokens. It may be started while another thread has a
  /// call under way.
  std::unique_ptr<Run> start(int64_t capacity, Keeps keeps = Keeps::All);

  /// Makes every call check `isCancelled` before each kernel (on a GPU, before each launch of
  /// recorded kernels; in the reference, before each op): if it returns true, the call ends with
  /// Cancelled. Prompts go through the layers in chunks, so that a kernel takes well below a
  /// second. It is called in the thread of the call; in a small model, every few microseconds. An
  /// empty function cancels nothing. Must not be set while a call is under way.
  void setInterrupt(std::function<bool()> isCancelled) { interrupt = std::move(isCancelled); }

  /// Makes calls whose tokens go through the layers in several chunks report how many of their
  /// tokens are done: 0 at the beginning, and then after each chunk (in patchEach, after each
  /// patch). In the reference all tokens go from layer to layer together, and each step counts as a
  /// share of them. Called in the thread of the call. Must not be set while a call is under way.
  void setProgress(std::function<void(int64_t done, int64_t all)> progress) {
    this->progress = std::move(progress);
  }

  /// An independent run that continues from the current state of `run`, a run of this executor,
  /// with room for `capacity` tokens; it keeps what `run` keeps. Errors: `capacity` is less than
  /// the size of `run`; not enough memory.
  llvm::Expected<std::unique_ptr<Run>> copy(const Run &run, int64_t capacity);

  /// Whether tokens see later ones, as in an encoder. Then one call must give all tokens of a run.
  /// The run may be truncated afterwards; then only the removed tokens may be run again, without
  /// other tokens and with the same state of the kept ones.
  virtual bool isBidirectional() const = 0;

  /// Runs tokens at their absolute positions (increasing, beyond those that the run holds) through
  /// the model. Returns logits: (tokens × vocabulary) with `allLogits`, otherwise (vocabulary) of
  /// the last token. After an error the run is unchanged.
  llvm::Expected<Logits> logits(Run &run, llvm::ArrayRef<Input> tokens,
                                llvm::ArrayRef<int64_t> positions, const ForwardOptions &options);
  /// The same, with logits in float64.
  llvm::Expected<std::vector<double>> forward(Run &run, llvm::ArrayRef<Input> tokens,
                                              llvm::ArrayRef<int64_t> positions,
                                              const ForwardOptions &options);
  llvm::Expected<std::vector<double>> forward(Run &run, llvm::ArrayRef<int64_t> tokens,
                                              llvm::ArrayRef<int64_t> positions,
                                              const ForwardOptions &options) {
    return forward(run, llvm::ArrayRef<Input>(toInputs(tokens)), positions, options);
  }

  /// Runs one token as forward does. Returns the next token by greedy choice: the index of the
  /// largest logit, the lowest of equals. Logits are not copied out.
  llvm::Expected<int64_t> next(Run &run, const Input &token, int64_t position,
                               const ForwardOptions &options);

  /// Algorithm 1 for one token: appends it to `full` and runs it at the same time in the reduced
  /// run, whose state does not change; the patches of all layers make the reduced run follow the
  /// full one. After an error both runs are unchanged.
  llvm::Expected<PatchStep> patch(Run &full, Run &reduced, const Input &token, int64_t position,
                                  const PatchOptions &options);

  /// Algorithm 1 for each of several tokens, with one pass over the weights for many of them:
  /// appends all tokens to `full`, where each sees those before it, and makes the patch of each.
  /// With its patch, a token follows the full run although it sees only the tokens of `reduced` at
  /// earlier positions, and no other token of the call. The reduced run does not change, and must
  /// have room for one more token. Each patch is the one that `patch` gives for that token after
  /// the same context. Errors: those of forward and patch; the model is bidirectional, so that its
  /// tokens cannot be run one after the other; the sink's errors. After an error `full` is
  /// unchanged.
  llvm::Error patchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                        llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                        PatchSink sink);
  llvm::Error patchEach(Run &full, Run &reduced, llvm::ArrayRef<int64_t> tokens,
                        llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                        PatchSink sink) {
    return patchEach(full, reduced, llvm::ArrayRef<Input>(toInputs(tokens)), positions, options,
                     sink);
  }

  /// How many numbers an embedding in place of a token has; none if the model takes no embeddings.
  virtual std::optional<int64_t> embeddingWidth() const { return std::nullopt; }

  /// The logits (count × vocabulary) that the model's head computes for `count` given residual
  /// vectors, one after the other. Errors: the model has no head (Program::head), or one that reads
  /// more than the residual stream; vectors of another width.
  llvm::Expected<std::vector<double>> readHead(llvm::ArrayRef<double> vectors, int64_t count);

  /// Runs one step of the program alone, for tokens whose values the caller has. Puts the values
  /// that the step computes in `outputs`, in the layer's order, a row for each token; memory that
  /// is given there is reused. If the step reads its context, `run` has what the step has kept of
  /// earlier tokens, and gets these; else it may be null. So that the next step begins with the
  /// same earlier tokens, the caller truncates the run to these. Errors: the executor runs no
  /// single steps, or not with other weights.
  llvm::Error runStep(const StepRows &rows, Run *run, std::vector<std::vector<float>> &outputs);

  virtual int64_t vocabulary() const = 0;
  virtual int64_t layers() const = 0;

protected:
  // The public calls call these after their checks: the runs are this executor's, the two runs of
  // one call are different, no other call is under way, and in patchEach the model is not
  // bidirectional. So a run may be cast to the type that makeRun gives.
  virtual std::unique_ptr<Run> makeRun(int64_t capacity) = 0;
  /// Copies the state of the tokens of `from` to `to`, which is empty and has room for them.
  virtual llvm::Error copyState(const Run &from, Run &to) = 0;
  virtual llvm::Expected<Logits> computeLogits(Run &run, llvm::ArrayRef<Input> tokens,
                                               llvm::ArrayRef<int64_t> positions,
                                               const ForwardOptions &options) = 0;
  virtual llvm::Expected<int64_t> computeNext(Run &run, const Input &token, int64_t position,
                                              const ForwardOptions &options);
  virtual llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                                 int64_t position, const PatchOptions &options) = 0;
  virtual llvm::Error computePatchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                                       llvm::ArrayRef<int64_t> positions,
                                       const PatchEachOptions &options, PatchSink sink) = 0;
  virtual llvm::Expected<Logits> computeHead(llvm::ArrayRef<double> vectors, int64_t count) = 0;
  virtual llvm::Error computeStep(const StepRows &rows, Run *run,
                                  std::vector<std::vector<float>> &outputs);

  /// Passes the patch of one token to the sink of patchEach.
  static llvm::Error give(int64_t token, int64_t position, PatchStep step, PatchSink sink);
  /// Returns Cancelled if the interrupt returns true.
  llvm::Error checkInterrupt() const {
    if (interrupt && interrupt())
      return llvm::make_error<Cancelled>();
    return llvm::Error::success();
  }

  /// Reports the progress of a call whose tokens are computed `chunk` at a time.
  void tell(int64_t done, int64_t all, int64_t chunk) const {
    if (progress && chunk < all)
      progress(done, all);
  }

private:
  class Call;
  const uint64_t number; ///< unique in the process, even after this executor is destroyed
  std::function<bool()> interrupt;
  std::function<void(int64_t, int64_t)> progress;
  std::atomic<std::thread::id> user = std::thread::id(); ///< whose call is under way
  bool isInSink = false; ///< whether that call waits for a sink; written by the user alone
};

/// Fills the empty run `full` with the state of all but the last of `tokens`, at positions from 0
/// on, ready for Executor::patch of the last. If the model is bidirectional, they have seen it.
inline llvm::Error readContext(Executor &executor, Run &full, llvm::ArrayRef<Input> tokens) {
  llvm::ArrayRef<Input> seen = executor.isBidirectional() ? tokens : tokens.drop_back();
  auto positions = llvm::to_vector(llvm::seq<int64_t>(0, seen.size()));
  auto logits = executor.forward(full, seen, positions, ForwardOptions());
  if (!logits)
    return logits.takeError();
  full.truncate(tokens.size() - 1);
  return llvm::Error::success();
}
inline llvm::Error readContext(Executor &executor, Run &full, llvm::ArrayRef<int64_t> tokens) {
  return readContext(executor, full, llvm::ArrayRef<Input>(toInputs(tokens)));
}

} // namespace ctxc

#endif // CTXC_PROGRAM_EXECUTOR_H
