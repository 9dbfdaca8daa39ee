//===- StepChecks.h - what every executor asks of a step before it runs ---===//
#ifndef CTXC_PROGRAM_STEPCHECKS_H
#define CTXC_PROGRAM_STEPCHECKS_H

#include "ctxc/Program/Input.h"
#include "ctxc/Program/Patch.h"
#include "ctxc/Program/Program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// Tokens go to increasing positions beyond `last` (−1: the run is empty), and the
/// run, which holds `held` tokens, has room for them. Rows are finite, of the width that the
/// program's embedding takes.
llvm::Error checkStep(const Program &program, int64_t held, int64_t last, int64_t capacity,
                      llvm::ArrayRef<Input> inputs, llvm::ArrayRef<int64_t> positions);

/// The numbers of a row that takes a token's place; none where the program has no place for one.
std::optional<int64_t> rowWidth(const Program &program);

/// Every token and position has a row in the tables that embed it. For executors whose
/// ops do not check ids themselves.
llvm::Error checkIds(const Program &program, llvm::ArrayRef<Input> inputs,
                     llvm::ArrayRef<int64_t> positions);

/// The stored names that a factored patch may change, experts one by one.
llvm::StringSet<> loadableNames(const Program &program);

/// The stored names that a patch may change.
class PatchableNames {
public:
  explicit PatchableNames(const Program &program);

  /// The patch changes parameters of the model, each once, and, unless it is
  /// materialized, such as the applied blocks take in.
  llvm::Error check(const Patch &patch, bool materialize) const;

private:
  llvm::StringSet<> all, loadable;
};

/// `layer` is one of the program's, or their number (then nothing is patched).
llvm::Error checkStartLayer(const Program &program, int64_t layer);

/// Of a bidirectional program (isBidirectional): a run that holds `held` tokens is given tokens
/// that it has seen, those behind the `held` of `sequence`, the tokens of its first call. Others
/// would have had to be seen by those that it holds.
llvm::Error checkSequence(int64_t held, llvm::ArrayRef<Input> sequence,
                          llvm::ArrayRef<Input> inputs);

/// The head takes `rows` streams, `elements` numbers together: of Executor::readHead. Returns the
/// head's step.
llvm::Expected<size_t> checkHead(const Program &program, int64_t elements, int64_t rows);

/// Whether a block has a contextual op, so that it needs every token.
bool readsContext(xf::BlockOp block);

/// Whether tokens see those behind them.
bool isBidirectional(const Program &program);

} // namespace ctxc

#endif // CTXC_PROGRAM_STEPCHECKS_H
