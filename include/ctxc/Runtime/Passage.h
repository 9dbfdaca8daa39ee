//===- Passage.h - sequences that go through a model together, by steps ---===//
//
// An executor runs a sequence through all steps at once. In a passage, many sequences go through
// one step together, so that a caller can read values between the steps, change the weights of the
// next step, and repeat it; and two passages with different weights can run side by side.
//
// A sequence may continue another one: it sees the other's tokens as its own past. The state of
// contextual ops is needed only within a step, and is then freed, unless a cache keeps it: then
// later passages can continue the sequences, for instance by one token of each at a time.
//
// The results are those of the executor that runs the steps: they depend neither on threads nor on
// which sequences run together.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_PASSAGE_H
#define CTXC_RUNTIME_PASSAGE_H

#include "ctxc/Program/Adapter.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Runtime/CompiledExecutor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace ctxc {

class CompiledExecutor;
class KernelCalls;

/// What runs a program's steps one by one, which passages share: an executor, on this processor or
/// elsewhere.
class StepKernels {
public:
  /// On this processor. `program` and `weights` must outlive the result. Errors: a block has no
  /// compiled form.
  static llvm::Expected<std::unique_ptr<StepKernels>>
  compile(const Program &program, Weights &weights, const CompiledOptions &options);
  /// Elsewhere, by an executor of `program` that runs single steps: with the executor's weights
  /// alone, and without virtual entries. `options` are of what the processor itself computes.
  StepKernels(const Program &program, std::unique_ptr<Executor> elsewhere,
              const CompiledOptions &options);
  ~StepKernels();

  /// Calls step `step`, which reads no context, on `rows` rows of each input.
  llvm::Expected<std::vector<std::vector<float>>>
  call(size_t step, Weights &weights, int64_t rows,
       llvm::ArrayRef<const std::vector<float> *> inputs);
  /// The threads of this processor that what is computed between steps runs in.
  const ParallelFor &parallelFor() const { return ownThreads; }

private:
  friend class Passage;
  friend class PassageCache;
  /// Where the steps are run on this processor, else null.
  KernelCalls *calls() const;

  Program program;
  int threads;
  ParallelFor ownThreads;
  CompiledExecutor *local = nullptr;
  std::unique_ptr<Executor> executor;                ///< null where the program has no steps
  llvm::DenseMap<mlir::Operation *, size_t> numbers; ///< of the steps, by their layers
};

/// The state of contextual ops for some sequences (keys and values), kept from one passage to the
/// next.
class PassageCache {
public:
  explicit PassageCache(const StepKernels &kernels);

  /// Adds a sequence without tokens, with room for `capacity`. Returns its number.
  size_t add(int64_t capacity);
  /// Adds a sequence that continues a copy of sequence `number`. Errors: those of Executor::copy.
  llvm::Expected<size_t> fork(size_t number, int64_t capacity);
  /// Frees the sequences from number `count` on.
  void shrink(size_t count);
  /// How many tokens sequence `number` has; how many bytes it keeps for each.
  int64_t tokens(size_t number) const { return all[number].run->size(); }
  int64_t bytesPerToken(size_t number) const;
  /// What the contextual ops of step `step` keep of sequence `number`, which a single passage has
  /// added: for each operand that they keep, in order, the rows of all tokens in float32.
  std::vector<std::vector<float>> rows(size_t number, size_t step) const;

private:
  friend class Passage;
  struct Sequence {
    std::unique_ptr<Run> run;
    int64_t capacity = 0, last = -1; ///< the position of its last token
  };
  const StepKernels *kernels;
  std::vector<Sequence> all;
};

/// Some tokens of a text that a model has read, with the values between the steps that it computed
/// for them with the whole text before them: what contextual ops keep of these tokens is then what
/// they kept in that text. Only where each token leaves something of its own (keys and values).
struct PinnedTokens {
  std::vector<int64_t> tokens, positions;
  int64_t end = 0; ///< how many tokens the text had
  llvm::DenseMap<mlir::Value, std::vector<float>> values;
};

/// Tokens at positions that increase, beyond those of the sequence that they continue. The first
/// position of one that continues none may be negative, where the model has no table of positions.
struct PassageSequence {
  std::vector<int64_t> tokens, positions;
  std::optional<size_t> after = std::nullopt; ///< the number of an earlier sequence
  std::optional<size_t> cached =
      std::nullopt; ///< in place of that: one of the cache, to which it is added
  const PinnedTokens *pinned = nullptr; ///< whose values these tokens have, before every step
  /// In the place of tokens, what every attention keeps of none: the sequence has no row, and
  /// `tokens` and `positions` are empty. An attention's entries are read when its step runs.
  const VirtualEntries *entries = nullptr;
};

/// The bytes that a passage takes besides the weights: where the steps are run elsewhere, those of
/// the values between them.
struct PassageSize {
  uint64_t most = 0; ///< at most, while it runs up to the head
  uint64_t rest = 0; ///< when it has come there
};

class Passage {
public:
  /// Computes nothing. Sequences of a cache are counted without what the cache holds.
  static PassageSize sizeOf(const StepKernels &kernels, llvm::ArrayRef<PassageSequence> sequences);
  /// The bytes that all steps together keep of a token on this processor.
  static uint64_t bytesPerToken(const StepKernels &kernels);

  /// `cache` must outlive the result; each of its sequences may be used at most once. A passage
  /// that writes to it must be run to its end, each contextual step once. Errors: no token; a token
  /// or a position that the model does not know; a bidirectional model.
  static llvm::Expected<Passage> start(StepKernels &kernels, Weights &weights,
                                       std::vector<PassageSequence> sequences,
                                       PassageCache *cache = nullptr);

  /// Some tokens of `text`, which begins at position 0, as a model reads it with `weights`. Errors:
  /// a recurrence or a convolution, in which a token leaves nothing of its own; those of start.
  static llvm::Expected<PinnedTokens> pin(StepKernels &kernels, Weights &weights,
                                          llvm::ArrayRef<int64_t> text,
                                          llvm::ArrayRef<int64_t> places);

  /// Runs all sequences through step `step`. The steps come in order, and each can be repeated
  /// until the next one comes. Values that no later step reads are freed.
  llvm::Error run(size_t step);
  /// Runs step after step up to, but without, `end`.
  llvm::Error runUpTo(size_t end);

  /// The tokens of all sequences, in order: the rows of every value.
  int64_t rows() const { return ids.size(); }
  /// The first row of sequence `i`; if `i` is the number of sequences, rows().
  int64_t firstRow(size_t i) const { return first[i]; }
  size_t nextStep() const { return next; }
  /// A value that has been computed, row after row.
  const std::vector<float> &values(mlir::Value value) const { return known.find(value)->second; }
  /// Puts other numbers, as many, in the place of a value that has been computed and that the next
  /// step may read.
  void replace(mlir::Value value, std::vector<float> numbers) { known[value] = std::move(numbers); }
  /// The steps from `step` on, without contextual ops, come again. What they read was kept.
  void goBackTo(size_t step) { next = step; }
  /// Keeps `value` until it is released.
  void keep(mlir::Value value) { kept.insert(value); }
  void release(mlir::Value value);

  /// The logits of some rows, one after the other, after all steps before the head have run.
  llvm::Expected<std::vector<float>> logits(llvm::ArrayRef<int64_t> rows);

private:
  Passage(StepKernels &kernels, Weights &weights) : kernels(&kernels), weights(&weights) {}
  StepRows rowsOf(size_t step, int64_t from, int64_t count) const;
  llvm::Error runContextual(size_t step);
  llvm::Expected<std::unique_ptr<Run>> startRun(const PassageSequence &sequence,
                                                llvm::ArrayRef<Run *> runs) const;
  llvm::Error fillWithEntries(size_t step, const VirtualEntries &entries, Run &run) const;
  void pinOutputs(size_t step);
  void freeUnread(mlir::Value value, size_t after);

  StepKernels *kernels;
  Weights *weights;
  PassageCache *cache = nullptr;
  std::vector<PassageSequence> sequences;
  std::vector<int32_t> ids, positions;
  std::vector<int64_t> first, held; ///< the cache's tokens of each sequence
  llvm::DenseMap<mlir::Value, std::vector<float>> known;
  llvm::DenseSet<mlir::Value> kept;
  size_t next = 0;
};

} // namespace ctxc

#endif // CTXC_RUNTIME_PASSAGE_H
