// The checks that all executors' calls begin with.
#include "ctxc/Program/Executor.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

char Cancelled::ID;

static uint64_t nextNumber() {
  static std::atomic<uint64_t> numbers{0};
  return ++numbers;
}

Executor::Executor() : number(nextNumber()) {}

std::unique_ptr<Run> Executor::start(int64_t capacity, Keeps keeps) {
  std::unique_ptr<Run> run = makeRun(capacity);
  run->kept = keeps;
  run->executor = number;
  return run;
}

/// A call under way, including its checks.
class Executor::Call {
public:
  explicit Call(Executor &executor) : executor(executor) {
    std::thread::id self = std::this_thread::get_id(), user;
    isOuter = executor.user.compare_exchange_strong(user, self);
    isOwn = !isOuter && user == self;
    isInner = isOwn && executor.isInSink;
    if (isInner)
      executor.isInSink = false;
  }
  ~Call() {
    if (isInner)
      executor.isInSink = true;
    if (isOuter)
      executor.user = std::thread::id();
  }
  Call(const Call &) = delete;

  Error check(ArrayRef<const Run *> runs) const {
    if (!isOuter && !isInner)
      return makeError(isOwn ? "the executor is called by an observer of its own call; call it "
                               "after that has returned"
                             : "the executor is in use by another thread; it takes one call at a "
                               "time");
    for (const Run *run : runs)
      if (run->executor != executor.number)
        return makeError("the run belongs to another executor; only the one that started it can "
                         "continue it");
    if (runs.size() == 2 && runs[0] == runs[1])
      return makeError("the full and the reduced run are one; they need a run each");
    return executor.checkInterrupt();
  }

  /// Calls a sink, which may call the executor.
  Error give(PatchSink sink, const TokenPatch &token) {
    executor.isInSink = true;
    Error error = sink(token);
    executor.isInSink = false;
    return error;
  }

private:
  Executor &executor;
  bool isOuter; ///< no other call was under way
  bool isOwn;   ///< another call of this thread was under way
  bool isInner; ///< and that call waits for its sink
};

Expected<std::unique_ptr<Run>> Executor::copy(const Run &run, int64_t capacity) {
  Call call(*this);
  if (Error error = call.check(&run))
    return std::move(error);
  if (capacity < run.size())
    return makeError("found a capacity of " + llvm::Twine(capacity) +
                     " tokens for a copy, expected at least the " + llvm::Twine(run.size()) +
                     " that the run holds");
  std::unique_ptr<Run> made = start(capacity, run.keeps());
  if (Error error = copyState(run, *made))
    return std::move(error);
  return made;
}

Expected<Logits> Executor::logits(Run &run, ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                  const ForwardOptions &options) {
  Call call(*this);
  if (Error error = call.check(&run))
    return std::move(error);
  return computeLogits(run, tokens, positions, options);
}

Expected<std::vector<double>> Executor::forward(Run &run, ArrayRef<Input> tokens,
                                                ArrayRef<int64_t> positions,
                                                const ForwardOptions &options) {
  Expected<Logits> numbers = logits(run, tokens, positions, options);
  if (!numbers)
    return numbers.takeError();
  return std::move(*numbers).doubles();
}

Expected<int64_t> Executor::next(Run &run, const Input &token, int64_t position,
                                 const ForwardOptions &options) {
  Call call(*this);
  if (Error error = call.check(&run))
    return std::move(error);
  return computeNext(run, token, position, options);
}

Expected<int64_t> Executor::computeNext(Run &run, const Input &token, int64_t position,
                                        const ForwardOptions &options) {
  Expected<Logits> numbers = computeLogits(run, token, position, options);
  if (!numbers)
    return numbers.takeError();
  return numbers->largest();
}

Expected<PatchStep> Executor::patch(Run &full, Run &reduced, const Input &token, int64_t position,
                                    const PatchOptions &options) {
  Call call(*this);
  if (Error error = call.check({&full, &reduced}))
    return std::move(error);
  return computePatch(full, reduced, token, position, options);
}

Error Executor::give(int64_t token, int64_t position, PatchStep step, PatchSink sink) {
  TokenPatch given;
  given.token = token;
  given.position = position;
  given.fullLogits = std::move(step.fullLogits);
  given.reducedLogits = std::move(step.reducedLogits);
  given.obligations = std::move(step.obligations);
  given.replayError = std::move(step.replayError);
  auto makePatch = [&]() -> Expected<Patch> { return step.patch; };
  given.patch = makePatch;
  return sink(given);
}

Error Executor::patchEach(Run &full, Run &reduced, ArrayRef<Input> tokens,
                          ArrayRef<int64_t> positions, const PatchEachOptions &options,
                          PatchSink sink) {
  Call call(*this);
  if (Error error = call.check({&full, &reduced}))
    return error;
  if (isBidirectional())
    return makeError("the model is bidirectional: every token sees all others, so that no two of "
                     "them can be patched in one pass");
  return computePatchEach(full, reduced, tokens, positions, options,
                          [&](const TokenPatch &token) { return call.give(sink, token); });
}

Expected<std::vector<double>> Executor::readHead(ArrayRef<double> vectors, int64_t count) {
  Call call(*this);
  if (Error error = call.check({}))
    return std::move(error);
  Expected<Logits> numbers = computeHead(vectors, count);
  if (!numbers)
    return numbers.takeError();
  return std::move(*numbers).doubles();
}

Error Executor::runStep(const StepRows &rows, Run *run, std::vector<std::vector<float>> &outputs) {
  Call call(*this);
  if (Error error = call.check(run ? ArrayRef<const Run *>(run) : ArrayRef<const Run *>()))
    return error;
  return computeStep(rows, run, outputs);
}

Error Executor::computeStep(const StepRows &, Run *, std::vector<std::vector<float>> &) {
  return makeError("this engine runs no single steps of a model; the compiled engine does");
}
