#include "ctxc/Inspect/Inspect.h"
#include "Subject.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

PatchOptions SubjectRuns::patchOptions() const {
  PatchOptions options;
  options.startLayer = request.run.startLayer;
  return options;
}

/// Fills `run` with the kept tokens of `tokens`, which are at positions from 0 on.
static Error keep(Executor &executor, Run &run, ArrayRef<int64_t> tokens, ArrayRef<int64_t> kept) {
  if (kept.empty())
    return Error::success();
  std::vector<int64_t> ids;
  for (int64_t position : kept)
    ids.push_back(tokens[position]);
  return executor.forward(run, ids, kept, ForwardOptions()).takeError();
}

Error SubjectRuns::start() {
  full = executor.start(tokens.size());
  reduced = executor.start(kept.size() + 1);
  if (Error error = readContext(executor, *full, tokens))
    return error;
  return keep(executor, *reduced, tokens, kept);
}

namespace {

/// The stored names of output-side parameters.
class OutputNames {
public:
  explicit OutputNames(const Program &program) {
    for (ProgramStep step : program.steps) {
      if (!step.index)
        continue;
      for (const std::string &name : program.outputs[*step.index]) {
        Expected<PatchedParameter> found = findPatched(step.block, step.layer, name);
        if (!found) {
          llvm::consumeError(found.takeError()); // cannot fail: the plan is this block's
          continue;
        }
        (found->isSliced() ? sliced : whole).insert(found->stored);
      }
    }
  }
  bool contains(llvm::StringRef parameter) const {
    return whole.contains(parameter) || llvm::any_of(sliced.keys(), [&](llvm::StringRef bank) {
             return sliceIndex(bank, parameter).has_value();
           });
  }

private:
  llvm::StringSet<> whole, sliced;
};

/// A parameter's name without the layer's prefix.
std::string withoutPrefix(llvm::StringRef parameter, const Program &program, int64_t layer) {
  for (ProgramStep step : program.steps)
    if (step.index == layer)
      parameter.consume_front(step.layer.getPrefix());
  return parameter.str();
}

class Inspector {
public:
  Inspector(Executor &executor, const Program &program, PatchNorms &norms,
            const InspectRequest &request)
      : executor(executor), program(program), norms(norms), request(request), outputs(program) {
    result.tokens = tokensOf(request.run.tokens);
    result.given = result.tokens.size();
    result.hasHead = program.head().has_value();
  }

  Expected<Inspection> run() {
    if (Error error = check())
      return std::move(error);
    if (!executor.isBidirectional())
      if (Error error = inspectTokens())
        return std::move(error);
    if (Error error = inspectSubject())
      return std::move(error);
    return std::move(result);
  }

private:
  Error check() const;
  Error inspectTokens();
  Error inspectSubject();
  Error add(int64_t token, int64_t position, int64_t next, Patch patch);
  Error generate(Run &full, Run &reduced, int64_t next);
  Expected<std::vector<ParameterChange>> changes(const Patch &patch);
  std::vector<int64_t> keptBefore(int64_t position) const {
    return ArrayRef(request.run.kept)
        .take_while([&](int64_t kept) { return kept < position; })
        .vec();
  }
  int64_t subjectPosition() const { return request.subject.value_or(result.given - 1); }

  Executor &executor;
  const Program &program;
  PatchNorms &norms;
  const InspectRequest &request;
  OutputNames outputs;
  Inspection result;
  Patch before; ///< the patch of the position before
};

} // namespace

Error Inspector::check() const {
  RunRequest plain;
  plain.tokens = request.run.tokens;
  plain.kept = request.run.kept;
  plain.startLayer = request.run.startLayer;
  if (Error error = checkRequest(plain, executor, request.generate + 1))
    return error;
  int64_t last = result.given + request.generate - 1, subject = subjectPosition();
  if (subject < 1 || subject > last)
    return makeError("token: found position " + llvm::Twine(subject) + ", expected one from 1 to " +
                     llvm::Twine(last) + "; the token at position 0 has no context");
  if (executor.isBidirectional() && subject != last)
    return makeError("token: found position " + llvm::Twine(subject) +
                     ", and the model is bidirectional: every token sees all others, so that the "
                     "last alone can be run without them; expected " +
                     llvm::Twine(last));
  if (request.generate && !result.hasHead)
    return makeError("tokens to generate: found " + llvm::Twine(request.generate) +
                     ", and the model has no head that would predict them; expected 0");
  return Error::success();
}

Error Inspector::add(int64_t token, int64_t position, int64_t next, Patch patch) {
  TokenInspection inspected;
  inspected.token = token;
  inspected.position = position;
  inspected.next = result.hasHead ? next : -1;
  auto table = measure(patch, executor.layers(), norms);
  if (!table)
    return table.takeError();
  inspected.norms = std::move(*table);
  if (!result.patches.empty())
    inspected.before = cosines(before, patch, executor.layers(),
                               [&](llvm::StringRef parameter) { return norms.layerOf(parameter); });
  before = std::move(patch);
  result.patches.push_back(std::move(inspected));
  return Error::success();
}

/// Tokens that follow the given ones: each is the full run's choice after the one before.
Error Inspector::generate(Run &full, Run &reduced, int64_t next) {
  PatchOptions options;
  options.startLayer = request.run.startLayer;
  options.logits = false;
  options.reducedHead = false;
  for (int64_t i = 0; i < request.generate && next >= 0; ++i) {
    if (i > 0 && llvm::is_contained(request.run.stops, result.tokens.back()))
      break;
    int64_t token = next, position = result.tokens.size();
    auto step = executor.patch(full, reduced, token, position, options);
    if (!step)
      return step.takeError();
    result.tokens.push_back(token);
    next = step->fullNext;
    if (Error error = add(token, position, next, std::move(step->patch)))
      return error;
  }
  return Error::success();
}

Error Inspector::inspectTokens() {
  Timer watch(result.times.tokens);
  const RunRequest &run = request.run;
  std::unique_ptr<Run> full = executor.start(result.given + request.generate, Keeps::Seen);
  std::unique_ptr<Run> reduced = executor.start(run.kept.size() + 1);
  const std::vector<int64_t> tokens = result.tokens;
  if (Error error = keep(executor, *reduced, tokens, run.kept))
    return error;
  if (Error error =
          executor.forward(*full, tokens.front(), int64_t(0), ForwardOptions()).takeError())
    return error;
  std::vector<int64_t> positions;
  for (int64_t position = 1; position < result.given; ++position)
    positions.push_back(position);
  PatchEachOptions options;
  options.startLayer = run.startLayer;
  options.logits = true;
  int64_t next = -1;
  if (Error error = executor.patchEach(*full, *reduced, ArrayRef(tokens).drop_front(), positions,
                                       options, [&](const TokenPatch &given) -> Error {
                                         Expected<Patch> patch = given.patch();
                                         if (!patch)
                                           return patch.takeError();
                                         next = given.fullLogits.largest();
                                         return add(given.token, given.position, next,
                                                    std::move(*patch));
                                       }))
    return error;
  return generate(*full, *reduced, next);
}

Expected<std::vector<ParameterChange>> Inspector::changes(const Patch &patch) {
  std::vector<ParameterChange> result;
  for (const ParameterPatch &entry : patch.parameters) {
    ParameterChange change;
    change.parameter = entry.parameter;
    change.layer = norms.layerOf(entry.parameter);
    change.name = withoutPrefix(entry.parameter, program, change.layer);
    change.isMatrix = entry.shape.size() > 1;
    change.isOutput = outputs.contains(entry.parameter);
    change.norm = std::sqrt(squaredNorm(entry));
    Expected<double> stored = norms.squaredNorm(entry.parameter);
    if (!stored)
      return stored.takeError();
    change.relative = *stored > 0 ? change.norm / std::sqrt(*stored) : 0;
    result.push_back(std::move(change));
  }
  return result;
}

/// The likeliest tokens with their probabilities.
static std::vector<TokenScore> likeliest(ArrayRef<double> logits, size_t count) {
  std::vector<TokenScore> top = extremes(logits, count);
  double sum = 0;
  for (double logit : logits)
    sum += std::exp(logit - top.front().score);
  double largest = top.front().score;
  for (TokenScore &token : top)
    token.score = std::exp(token.score - largest) / sum;
  return top;
}

Error Inspector::inspectSubject() {
  int64_t position = subjectPosition();
  if (position >= int64_t(result.tokens.size())) // the full run predicted no token
    return makeError("token: position " + llvm::Twine(position) + " was not reached: after " +
                     llvm::Twine(result.tokens.size()) + " tokens no logit is the largest");
  SubjectRuns runs{executor,
                   program,
                   norms,
                   request,
                   ArrayRef(result.tokens).take_front(position + 1),
                   keptBefore(position),
                   nullptr,
                   nullptr};
  SubjectInspection &subject = result.subject;
  subject.token = runs.token();
  subject.position = position;
  if (Error error = runs.start())
    return error;
  auto step =
      executor.patch(*runs.full, *runs.reduced, runs.token(), position, runs.patchOptions());
  if (!step)
    return step.takeError();
  subject.obligations = step->obligations;
  auto table = measure(step->patch, executor.layers(), norms);
  if (!table)
    return table.takeError();
  subject.norms = *table;
  Expected<std::vector<ParameterChange>> parameters = changes(step->patch);
  if (!parameters)
    return parameters.takeError();
  subject.parameters = std::move(*parameters);

  ForwardOptions options;
  options.append = false;
  auto unpatched = executor.forward(*runs.reduced, runs.token(), position, options);
  if (!unpatched)
    return unpatched.takeError();
  options.patch = &step->patch;
  auto patched = executor.forward(*runs.reduced, runs.token(), position, options);
  if (!patched)
    return patched.takeError();
  std::vector<double> full = step->fullLogits.doubles();
  subject.patchedMetrics = compareLogits(full, *patched);
  subject.unpatchedMetrics = compareLogits(full, *unpatched);
  if (result.hasHead) {
    subject.full = likeliest(full, request.nearest);
    subject.patched = likeliest(*patched, request.nearest);
    subject.unpatched = likeliest(*unpatched, request.nearest);
  }
  if (executor.isBidirectional())
    if (Error error = add(runs.token(), position, step->fullNext, step->patch))
      return error;
  {
    Timer watch(result.times.writes);
    if (Error error = readWrites(runs, step->patch, subject))
      return error;
  }
  Timer watch(result.times.leftOut);
  return leaveOut(runs, *step, subject);
}

Expected<Inspection> ctxc::inspect(Executor &executor, const Program &program, PatchNorms &norms,
                                   const InspectRequest &request) {
  return Inspector(executor, program, norms, request).run();
}
