//===- StepChecks.h - what every executor checks before it runs a step ----===//
#ifndef CTXC_PROGRAM_STEPCHECKS_H
#define CTXC_PROGRAM_STEPCHECKS_H

#include "ctxc/Program/Input.h"
#include "ctxc/Program/Patch.h"
#include "ctxc/Program/Program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// Checks that the tokens' positions increase and are beyond `last` (−1: the run is empty), that
/// the run, which holds `held` tokens, has room for them, and that embeddings are finite and of the
/// width that the program takes.
llvm::Error checkStep(const Program &program, int64_t held, int64_t last, int64_t capacity,
                      llvm::ArrayRef<Input> inputs, llvm::ArrayRef<int64_t> positions);

/// How many numbers an embedding in place of a token has; none if the program takes no embeddings.
std::optional<int64_t> embeddingWidth(const Program &program);

/// Checks that every token and position has a row in the tables that embed it. For executors
/// whose ops do not check ids themselves.
llvm::Error checkIds(const Program &program, llvm::ArrayRef<Input> inputs,
                     llvm::ArrayRef<int64_t> positions);

/// The stored names that a factored patch may change, with a name for each expert.
llvm::StringSet<> loadableNames(const Program &program);

/// The stored names that a patch may change.
class PatchableNames {
public:
  explicit PatchableNames(const Program &program);

  /// Checks that the patch changes parameters of the model, each once, and, unless it is
  /// materialized, only parameters that the applied blocks can patch.
  llvm::Error check(const Patch &patch, bool materialize) const;

private:
  llvm::StringSet<> all, loadable;
};

/// Checks that `layer` is one of the program's layers, or their number (then nothing is patched).
llvm::Error checkStartLayer(const Program &program, int64_t layer);

/// For a bidirectional program (isBidirectional): checks that a run that holds `held` tokens is
/// given only tokens that it has seen: those after the first `held` of `sequence`, the tokens of
/// its first call. Any others would have to be seen by the tokens that the run holds.
llvm::Error checkSequence(int64_t held, llvm::ArrayRef<Input> sequence,
                          llvm::ArrayRef<Input> inputs);

/// Checks that the head takes `count` vectors with `elements` numbers in all (Executor::readHead).
/// Returns the head's step.
llvm::Expected<size_t> checkHead(const Program &program, int64_t elements, int64_t count);

/// Whether a block has a contextual op, so that it must run for every token.
bool readsContext(xf::BlockOp block);

/// The largest number of tokens that a step's contextual ops read: the last ones, including the
/// token itself. None if one op reads all tokens.
std::optional<int64_t> windowOf(ProgramStep step);

/// Whether an op carries a state from token to token (getCarried).
bool isRecurrent(const Program &program);
/// Whether an op reads the tokens before its own by their order, whatever their positions are: a
/// convolution or a recurrence.
bool countsTokens(const Program &program);

/// Whether tokens see later ones.
bool isBidirectional(const Program &program);

} // namespace ctxc

#endif // CTXC_PROGRAM_STEPCHECKS_H
