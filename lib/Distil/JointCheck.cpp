// What a joint patch gives, beside the full run and the run without either.
#include "JointRuns.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include <cmath>

using namespace ctxc;

using Numbers = std::vector<float>;

static llvm::Expected<size_t> headOf(const SplitModel &model) {
  if (std::optional<size_t> head = model.split.program.head())
    return *head;
  return makeError("the model has no head that gives each token's logits by itself");
}

namespace {

/// Three runs up to the head.
struct ThreeRuns {
  Passage full, patched, plain;
};

} // namespace

static llvm::Expected<ThreeRuns> readAll(SplitModel model, const JointChanges &changes,
                                         const JointRequest &request) {
  auto head = headOf(model);
  if (!head)
    return head.takeError();
  auto start = [&](std::vector<PassageSequence> sequences) {
    return Passage::start(model.steps, model.weights, std::move(sequences));
  };
  auto full = start(behindContext(request)), patched = start(behindPrefix(request)),
       plain = start(behindPrefix(request));
  if (!full || !patched || !plain)
    return llvm::joinErrors(llvm::joinErrors(full.takeError(), patched.takeError()),
                            plain.takeError());
  if (llvm::Error error = full->runUpTo(*head))
    return std::move(error);
  if (llvm::Error error = changes.runUpTo(model.split, *patched, *head))
    return std::move(error);
  if (llvm::Error error = plain->runUpTo(*head))
    return std::move(error);
  return ThreeRuns{std::move(*full), std::move(*patched), std::move(*plain)};
}

/// The difference of two rows of logits; infinite where one is no number.
static double largestDifference(const Numbers &a, const Numbers &b) {
  double most = 0;
  for (auto [x, y] : llvm::zip(a, b))
    most = std::isfinite(y) ? std::max<double>(most, std::abs(double(x) - y)) : HUGE_VAL;
  return most;
}

llvm::Expected<JointCheck> ctxc::compareRuns(SplitModel model, const JointChanges &changes,
                                             const JointRequest &request) {
  auto runs = readAll(model, changes, request);
  if (!runs)
    return runs.takeError();
  int64_t count = 0;
  for (const TextSequence &text : request.texts)
    count += text.tokens.size();
  auto logitsOf = [&](Passage &run, int64_t row) { return run.logits(run.rows() - count + row); };
  JointCheck check;
  int64_t next = 0;
  for (auto [text, sequence] : llvm::enumerate(request.texts))
    for (int64_t row = 0; row < int64_t(sequence.tokens.size()); ++row, ++next) {
      auto truth = logitsOf(runs->full, next), found = logitsOf(runs->patched, next),
           other = logitsOf(runs->plain, next);
      if (!truth || !found || !other)
        return llvm::joinErrors(llvm::joinErrors(truth.takeError(), found.takeError()),
                                other.takeError());
      ++check.tokens;
      if (double own = largestDifference(*truth, *found); own > check.difference) {
        check.difference = own;
        check.text = text;
        check.at = row;
      }
      check.control = std::max(check.control, largestDifference(*truth, *other));
      check.agree += argmax(*truth) == argmax(*found);
      check.agreeControl += argmax(*truth) == argmax(*other);
    }
  return check;
}

namespace {

/// Generates with the full run, while the changes grow.
class JointGenerator {
public:
  JointGenerator(SplitModel model, const JointRequest &request, int64_t tokens)
      : model(model), request(request), patcher(model, tokens, /*chooses=*/false),
        full(model.steps), reduced(model.steps), plain(model.steps) {}
  llvm::Expected<JointVerification> run(int64_t count, StepObserver observe);

private:
  llvm::Expected<VerifyStep> read(bool isFirst);

  SplitModel model;
  JointRequest request; ///< whose text grows
  JointPatcher patcher;
  PassageCache full, reduced, plain;
  size_t head = 0;
  JointVerification result;
};

/// The parts of `all` as one sequence of a cache, or of what begins with it the last token alone.
static PassageSequence joined(std::vector<PassageSequence> all, bool isFirst) {
  PassageSequence one;
  one.cached = 0;
  for (const PassageSequence &each : all) {
    llvm::append_range(one.tokens, each.tokens);
    llvm::append_range(one.positions, each.positions);
  }
  if (!isFirst) {
    one.tokens = {one.tokens.back()};
    one.positions = {one.positions.back()};
  }
  return one;
}

/// Runs the tokens that no run has read yet, and compares what they say of the next one.
llvm::Expected<VerifyStep> JointGenerator::read(bool isFirst) {
  PassageSequence behind = joined(behindContext(request), isFirst),
                  alone = joined(behindPrefix(request), isFirst);
  const int64_t text = isFirst ? request.texts.front().tokens.size() : 1,
                taught = behind.tokens.size() - text, learned = alone.tokens.size() - text;
  VerifyStep step;
  step.token = behind.tokens.back();
  step.position = behind.positions.back();
  std::vector<std::string> names = rowNames(request);
  names.erase(names.begin(), names.end() - alone.tokens.size());
  auto first = Passage::start(model.steps, model.weights, {std::move(behind)}, &full);
  auto second = Passage::start(model.steps, model.weights, {alone}, &reduced);
  auto third = Passage::start(model.steps, model.weights, {alone}, &plain);
  if (!first || !second || !third)
    return llvm::joinErrors(llvm::joinErrors(first.takeError(), second.takeError()),
                            third.takeError());
  {
    ctxc::Timer timer(isFirst ? result.times.prefill : result.times.patch);
    (isFirst ? result.times.tokens.prefill : result.times.tokens.patch) += isFirst ? taught : 1;
    if (llvm::Error error = patcher.read({*first, *second, taught, learned, std::move(names)}))
      return std::move(error);
    for (Passage *run : {&*first, &*second})
      if (llvm::Error error = run->runUpTo(head))
        return std::move(error);
  }
  {
    ctxc::Timer timer(result.times.control);
    ++result.times.tokens.control;
    if (llvm::Error error = third->runUpTo(head))
      return std::move(error);
  }
  auto truth = first->logits(first->rows() - 1), found = second->logits(second->rows() - 1),
       other = third->logits(third->rows() - 1);
  if (!truth || !found || !other)
    return llvm::joinErrors(llvm::joinErrors(truth.takeError(), found.takeError()),
                            other.takeError());
  step.next = argmax(*truth);
  step.patched = compareLogits(*truth, *found);
  step.control = compareLogits(*truth, *other);
  return std::move(step);
}

llvm::Expected<JointVerification> JointGenerator::run(int64_t count, StepObserver observe) {
  if (llvm::Error error = headOf(model).moveInto(head))
    return std::move(error);
  TextSequence &text = request.texts.front();
  const int64_t most = text.tokens.size() + count - 1;
  full.add(request.context.size() + most);
  for (PassageCache *cache : {&reduced, &plain})
    cache->add(request.prefix.size() + most);
  for (int64_t i = 0; i < count; ++i) {
    auto step = read(i == 0);
    if (!step)
      return step.takeError();
    observe(*step);
    const int64_t next = step->next;
    result.steps.push_back(std::move(*step));
    result.ended = llvm::is_contained(request.stops, next);
    if (result.ended || next < 0)
      break; // without a largest logit, nothing can follow either
    if (i + 1 < count)
      text.tokens.push_back(next);
  }
  if (llvm::Error error = patcher.patch(text.tokens.size()).moveInto(result.patch))
    return std::move(error);
  result.patch.adapter.prefix = request.prefix;
  result.times.tokens.verify = text.tokens.size();
  {
    ctxc::Timer timer(result.times.verify);
    if (llvm::Error error =
            checkJointly(model, result.patch.adapter, request).moveInto(result.reread))
      return std::move(error);
  }
  return std::move(result);
}

} // namespace

llvm::Expected<JointVerification> ctxc::verifyJointly(SplitModel model, const JointRequest &request,
                                                      int64_t count, StepObserver observe) {
  if (request.texts.size() != 1)
    return makeError("found " + llvm::Twine(request.texts.size()) +
                     " texts to generate behind, expected one");
  if (llvm::Error error = checkJointRequest(model, request, count - 1))
    return std::move(error);
  const int64_t tokens = request.prefix.size() + request.texts.front().tokens.size() + count - 1;
  return JointGenerator(model, request, tokens).run(count, observe);
}
