// One patch that grows with a text, while both runs read it.
#include "JointRuns.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"

using namespace ctxc;

class JointRun::State {
public:
  State(SplitModel model, const JointRequest &request, int64_t most, size_t head, bool compares)
      : model(model), request(request), head(head), comparesControl(compares),
        patcher(model, request.prefix.size() + most, /*chooses=*/false), runs(model.steps),
        plain(model.steps) {
    this->request.texts.front().tokens.clear();
    runs.add(request.context.size() + most);
    for (PassageCache *cache : {&runs, &plain})
      cache->add(request.prefix.size() + most);
  }
  llvm::Expected<VerifyStep> read(llvm::ArrayRef<int64_t> tokens);
  std::vector<int64_t> &text() { return request.texts.front().tokens; }
  int64_t inFront() const { return request.prefix.size(); }

  SplitModel model;
  JointRequest request; ///< whose text grows
  size_t head;
  bool comparesControl;
  JointPatcher patcher;
  PassageCache runs, ///< the full run, and the reduced one with the changes
      plain;
  RunTimes times;
};

/// The last `count` tokens of `all` as one sequence of a cache.
static PassageSequence lastOf(std::vector<PassageSequence> all, size_t count, size_t number) {
  PassageSequence one;
  one.cached = number;
  for (const PassageSequence &each : all) {
    llvm::append_range(one.tokens, each.tokens);
    llvm::append_range(one.positions, each.positions);
  }
  for (auto *numbers : {&one.tokens, &one.positions})
    numbers->erase(numbers->begin(), numbers->end() - std::min(count, numbers->size()));
  return one;
}

llvm::Expected<VerifyStep> JointRun::State::read(llvm::ArrayRef<int64_t> tokens) {
  const bool isFirst = text().empty();
  llvm::append_range(text(), tokens);
  const size_t count = isFirst ? SIZE_MAX : tokens.size(); // what stands before them too
  PassageSequence behind = lastOf(behindContext(request), count, 0),
                  alone = lastOf(behindPrefix(request), count, 1), control = alone;
  control.cached = 0;
  const int64_t begin = behind.tokens.size(), taught = begin - tokens.size(),
                learned = alone.tokens.size() - tokens.size();
  VerifyStep step;
  step.token = behind.tokens.back();
  step.position = behind.positions.back();
  std::vector<std::string> names = rowNames(request);
  names.erase(names.begin(), names.end() - alone.tokens.size());
  // Both runs in one passage, so that each weight is read once.
  auto both = Passage::start(model.steps, model.weights, {std::move(behind), alone}, &runs);
  if (!both)
    return both.takeError();
  std::vector<float> truth, found;
  {
    ctxc::Timer timer(isFirst ? times.prefill : times.patch);
    (isFirst ? times.tokens.prefill : times.tokens.patch) += isFirst ? taught : tokens.size();
    if (llvm::Error error = patcher.read({*both, *both, taught, begin, learned, std::move(names)}))
      return std::move(error);
    if (llvm::Error error = both->runUpTo(head))
      return std::move(error);
    auto logits = both->logits({begin - 1, both->rows() - 1});
    if (!logits)
      return logits.takeError();
    const auto middle = logits->begin() + logits->size() / 2;
    truth.assign(logits->begin(), middle);
    found.assign(middle, logits->end());
  }
  step.next = argmax(truth);
  step.patched = compareLogits(truth, found);
  if (!comparesControl)
    return std::move(step);
  ctxc::Timer timer(times.control);
  times.tokens.control += tokens.size();
  auto third = Passage::start(model.steps, model.weights, {control}, &plain);
  if (!third)
    return third.takeError();
  if (llvm::Error error = third->runUpTo(head))
    return std::move(error);
  auto other = third->logits(third->rows() - 1);
  if (!other)
    return other.takeError();
  step.control = compareLogits(truth, *other);
  return std::move(step);
}

llvm::Expected<JointRun> JointRun::start(SplitModel model, const JointRequest &request,
                                         int64_t most, bool comparesControl) {
  if (request.texts.size() != 1)
    return makeError("found " + llvm::Twine(request.texts.size()) +
                     " texts to generate behind, expected one");
  const int64_t begun = request.texts.front().tokens.size();
  if (llvm::Error error = checkJointRequest(model, request, most - begun))
    return std::move(error);
  auto head = headOf(model);
  if (!head)
    return head.takeError();
  return JointRun(std::make_unique<State>(model, request, most, *head, comparesControl));
}

JointRun::JointRun(std::unique_ptr<State> state) : state(std::move(state)) {}
JointRun::JointRun(JointRun &&) noexcept = default;
JointRun &JointRun::operator=(JointRun &&) noexcept = default;
JointRun::~JointRun() = default;

llvm::Expected<VerifyStep> JointRun::read(llvm::ArrayRef<int64_t> tokens) {
  const bool isFirst = state->text().empty();
  auto step = state->read(tokens);
  if (!step || exact() == int64_t(state->text().size()))
    return step;
  if (state->request.goesOn && !(isFirst && exact() < int64_t(tokens.size())))
    return step;
  return makeError(whyInexact());
}

llvm::ArrayRef<int64_t> JointRun::text() const { return state->text(); }
int64_t JointRun::exact() const { return state->patcher.served() - state->inFront(); }
std::string JointRun::whyInexact() const { return state->patcher.whyNotServed(); }
std::vector<MatrixChange> JointRun::added() const { return state->patcher.added(); }
const RunTimes &JointRun::times() const { return state->times; }

llvm::Expected<JointPatch> JointRun::patch() const {
  auto patch = state->patcher.patch(exact());
  if (patch)
    patch->adapter.prefix = state->request.prefix;
  return patch;
}

llvm::Expected<JointVerification> ctxc::verifyJointly(SplitModel model, const JointRequest &request,
                                                      int64_t count, StepObserver observe) {
  const int64_t begun = request.texts.empty() ? 0 : request.texts.front().tokens.size();
  auto run = JointRun::start(model, request, begun + count - 1, /*comparesControl=*/true);
  if (!run)
    return run.takeError();
  JointVerification result;
  std::vector<int64_t> more = request.texts.front().tokens;
  while (int64_t(result.steps.size()) < count) {
    auto step = run->read(more);
    if (!step)
      return step.takeError();
    result.exact += run->exact() == int64_t(run->text().size());
    observe(*step);
    more = {step->next};
    result.steps.push_back(std::move(*step));
    result.ended = llvm::is_contained(request.stops, more.front());
    if (result.ended || more.front() < 0)
      break; // without a largest logit, nothing can follow either
  }
  result.whyInexact = run->whyInexact();
  if (llvm::Error error = run->patch().moveInto(result.patch))
    return std::move(error);
  JointRequest again = request;
  again.texts.front().tokens = run->text().take_front(run->exact()).vec();
  result.times = run->times();
  result.times.tokens.verify = run->exact();
  ctxc::Timer timer(result.times.verify);
  if (llvm::Error error = checkJointly(model, result.patch.adapter, again).moveInto(result.reread))
    return std::move(error);
  return std::move(result);
}
