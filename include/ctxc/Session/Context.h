//===- Context.h - a context that is read once and then reused ------------===//
//
// The full run of some tokens, and the reduced run of the kept ones (Verify.h). Once they are read,
// the patch of a continuation costs one token and not a whole prompt:
//
//   auto context = model.context(prompt);
//   auto step = context->patch();          // of the last token
//   context->extend(step->fullNext);       // one token further
//   auto other = context->fork();          // and in another direction
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_CONTEXT_H
#define CTXC_SESSION_CONTEXT_H

#include "ctxc/Program/Executor.h"
#include <memory>
#include <vector>

namespace ctxc {

class Model;
class StreamSizes;

/// Made by Model::context; must not outlive the model. Follows the model's contract on threads.
class Context {
public:
  Context(Context &&) = default;
  Context &operator=(Context &&) = default;

  /// All tokens, at positions from 0 on. The last is the one that is patched.
  llvm::ArrayRef<Input> tokens() const { return inputs; }
  /// The positions that the reduced run keeps.
  llvm::ArrayRef<int64_t> keptPositions() const { return kept; }

  /// Appends `more`, and reads all but the last of them. Errors: those of Executor::forward; the
  /// model is bidirectional, so that tokens see later ones.
  llvm::Error extend(llvm::ArrayRef<Input> more);
  llvm::Error extend(int64_t token) { return extend(llvm::ArrayRef<Input>(Input(token))); }

  /// An independent context of the same tokens. What was read is copied, not read again.
  llvm::Expected<Context> fork() const;

  /// Algorithm 1 for the last token: its patch, and both runs' logits. The context stays as it is.
  /// `sizes` sees the full run's layers.
  llvm::Expected<PatchStep> patch(StreamSizes *sizes = nullptr);

  /// The logits after the last token, with the context; given a patch, the logits of the reduced
  /// run with the patch, which has seen only the kept tokens.
  llvm::Expected<Logits> logits();
  llvm::Expected<Logits> logits(const Patch &patch);

private:
  friend class Model;
  Context(Model &model, std::vector<Input> inputs, std::vector<int64_t> kept)
      : model(&model), inputs(std::move(inputs)), kept(std::move(kept)) {}
  llvm::Error read();

  Model *model;
  std::vector<Input> inputs;
  std::vector<int64_t> kept;
  int64_t capacity = 0;         ///< of the full run, in tokens
  std::unique_ptr<Run> full;    ///< of all but the last token
  std::unique_ptr<Run> reduced; ///< of the kept tokens
};

} // namespace ctxc

#endif // CTXC_SESSION_CONTEXT_H
