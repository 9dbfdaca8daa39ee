#include "ctxc/Session/Context.h"
#include "Use.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// Spare room for tokens, so that not every extension copies the run.
static int64_t roomFor(int64_t tokens) { return std::max<int64_t>(64, tokens + tokens / 2); }

Error Context::read() {
  Expected<Executor &> executor = model->executor();
  if (!executor)
    return executor.takeError();
  RunRequest request;
  request.tokens = inputs;
  request.kept = kept;
  request.startLayer = model->options().planning.startLayer;
  if (Error error = checkRequest(request, *executor))
    return error;
  capacity = roomFor(inputs.size());
  full = executor->start(capacity, Keeps::Seen);
  reduced = executor->start(kept.size() + 1);
  if (Error error = readContext(*executor, *full, llvm::ArrayRef<Input>(inputs)))
    return error;
  if (kept.empty())
    return Error::success();
  auto keptInputs = llvm::to_vector(llvm::map_range(kept, [&](int64_t i) { return inputs[i]; }));
  return executor->forward(*reduced, llvm::ArrayRef<Input>(keptInputs), kept, ForwardOptions())
      .takeError();
}

Error Context::extend(llvm::ArrayRef<Input> more) {
  Expected<Model::Use> use = model->use();
  if (!use)
    return use.takeError();
  if (more.empty())
    return Error::success();
  model->warnOfLength(inputs.size() + more.size());
  Expected<Executor &> executor = model->executor();
  if (!executor)
    return executor.takeError();
  if (executor->isBidirectional())
    return makeError(model->name() + ": is bidirectional: every token sees those behind it, so "
                                     "that a context cannot go on; expected a new one");
  // Reads the token that was the last, and all but the last of the new ones.
  std::vector<Input> read = {inputs.back()};
  read.insert(read.end(), more.begin(), more.end() - 1);
  auto positions =
      llvm::to_vector(llvm::seq<int64_t>(inputs.size() - 1, inputs.size() - 1 + read.size()));
  int64_t needed = inputs.size() + more.size();
  if (needed > capacity) {
    int64_t room = roomFor(needed);
    Expected<std::unique_ptr<Run>> larger = executor->copy(*full, room);
    if (!larger)
      return larger.takeError();
    full = std::move(*larger);
    capacity = room;
  }
  if (Error error =
          executor->forward(*full, llvm::ArrayRef<Input>(read), positions, ForwardOptions())
              .takeError())
    return error;
  inputs.insert(inputs.end(), more.begin(), more.end());
  return Error::success();
}

Expected<Context> Context::fork() const {
  Expected<Model::Running> run = model->running();
  if (!run)
    return run.takeError();
  Context other(*model, inputs, kept);
  other.capacity = roomFor(inputs.size());
  auto fullCopy = run->executor.copy(*full, other.capacity);
  if (!fullCopy)
    return fullCopy.takeError();
  auto reducedCopy = run->executor.copy(*reduced, kept.size() + 1);
  if (!reducedCopy)
    return reducedCopy.takeError();
  other.full = std::move(*fullCopy);
  other.reduced = std::move(*reducedCopy);
  return other;
}

Expected<PatchStep> Context::patch(StreamSizes *sizes) {
  Expected<Model::Running> run = model->running();
  if (!run)
    return run.takeError();
  PatchOptions options;
  options.startLayer = model->options().planning.startLayer;
  if (sizes)
    options.fullObserver = sizes->observer(nullptr);
  int64_t last = inputs.size() - 1;
  Expected<PatchStep> step = run->executor.patch(*full, *reduced, inputs.back(), last, options);
  full->truncate(last);
  return step;
}

static Expected<Logits> lastLogits(Executor &executor, Run &run, const Input &token,
                                   int64_t position, const Patch *patch) {
  ForwardOptions options;
  options.patch = patch;
  options.append = false;
  return executor.logits(run, llvm::ArrayRef<Input>(token), position, options);
}

Expected<Logits> Context::logits() {
  Expected<Model::Running> run = model->running();
  if (!run)
    return run.takeError();
  return lastLogits(run->executor, *full, inputs.back(), inputs.size() - 1, nullptr);
}

Expected<Logits> Context::logits(const Patch &patch) {
  Expected<Model::Running> run = model->running();
  if (!run)
    return run.takeError();
  return lastLogits(run->executor, *reduced, inputs.back(), inputs.size() - 1, &patch);
}
