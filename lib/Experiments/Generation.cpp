// The paper's main experiment: generation with each token's patch in place of the context, compared
// token by token with generation with it. `scaling` is the same, of the updates of its appendix.
#include "Experiments.h"
#include "ctxc/Verify/Verify.h"
#include <map>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// A setting in which prompts are run.
struct Way {
  std::string dtype, update;
  bool materialized;
};

std::string keyOf(size_t prompt, const Way &way, StringRef run, int64_t step) {
  return key({{"prompt", std::to_string(prompt)},
              {"dtype", way.dtype},
              {"update", run == "control" ? "none" : way.update},
              {"materialized", way.materialized ? "yes" : "no"},
              {"run", run.str()},
              {"step", std::to_string(step)}});
}

class Generation {
public:
  /// `factored`: where patches are materialised, they are also kept beside the weights.
  Generation(Lab &lab, bool factored) : lab(lab), factored(factored) {}

  Error run() {
    lab.progress.expect(waysOf().size() * lab.prompts.size() * lab.generate);
    for (const Way &way : waysOf()) {
      if (Error error = run(way))
        return error;
    }
    return Error::success();
  }

private:
  /// Patches are materialised only where rounding to the type loses digits that float32 keeps.
  std::vector<Way> waysOf() const {
    std::vector<Way> ways;
    for (const std::string &dtype : lab.dtypes)
      for (const std::string &update : lab.updates) {
        bool rounds = roundsPatches(dtype);
        if (factored || !rounds)
          ways.push_back({dtype, update, false});
        if (rounds)
          ways.push_back({dtype, update, true});
      }
    return ways;
  }

  /// The control is the same with every update: the first one's runs include it.
  bool withControl(const Way &way) const {
    return way.update == lab.updates.front() &&
           (!way.materialized || (!factored && roundsPatches(way.dtype)));
  }

  bool isThere(size_t prompt, const Way &way) const {
    for (int64_t step = 0; step < lab.generate; ++step)
      if (!lab.records.has(keyOf(prompt, way, "patched", step)) ||
          (withControl(way) && !lab.records.has(keyOf(prompt, way, "control", step))))
        return false;
    return true;
  }

  Error run(const Way &way) {
    lab.progress.begin(way.dtype + " " + way.update + (way.materialized ? " materialised" : ""));
    std::unique_ptr<ReadyModel> model;
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      if (isThere(prompt, way)) {
        lab.progress.advance(lab.generate, /*skipped=*/true);
        continue;
      }
      if (!model) {
        auto opened = lab.open({way.dtype, way.update});
        if (!opened)
          return opened.takeError();
        model = std::move(*opened);
      }
      if (Error error = run(*model, way, prompt))
        return error;
    }
    return Error::success();
  }

  Error run(ReadyModel &model, const Way &way, size_t prompt) {
    RunRequest request;
    request.tokens = toInputs(lab.prompts[prompt].tokens);
    request.kept = lab.prompts[prompt].kept;
    request.materialize = way.materialized;
    request.control = withControl(way);
    Error error = Error::success();
    int64_t step = 0;
    auto observe = [&](const VerifyStep &made) {
      if (!error)
        error = write(way, prompt, step++, made);
      lab.progress.advance();
    };
    auto result = way.materialized || model.executor().isBidirectional()
                      ? verify(model.executor(), request, lab.generate, model.norms(), observe)
                      : inOnePass(model, std::move(request), way.dtype, prompt, observe);
    if (!result)
      return llvm::joinErrors(std::move(error), result.takeError());
    return error;
  }

  /// The same patches, made in one pass over the weights for all tokens: these are generated once
  /// for all updates. Each is verified in a run of its own, as ever.
  Expected<VerifyResult> inOnePass(ReadyModel &model, RunRequest request, const std::string &dtype,
                                   size_t prompt, StepObserver observe) {
    std::vector<int64_t> &tokens = continued[{dtype, prompt}];
    if (tokens.empty()) {
      auto made = continueGreedily(model.executor(), lab.prompts[prompt], lab.generate);
      if (!made)
        return made.takeError();
      tokens = std::move(*made);
    }
    for (int64_t position = request.tokens.size() - 1; position < int64_t(tokens.size());
         ++position)
      request.positions.push_back(position);
    request.tokens = toInputs(tokens);
    return verifyEach(model.executor(), request, model.norms(), observe);
  }

  Error write(const Way &way, size_t prompt, int64_t index, const VerifyStep &step) {
    Object record = settings(way, prompt, index, step);
    record["update"] = way.update;
    record["run"] = "patched";
    merge(record, patchedJson(step));
    if (Error error = lab.records.add(keyOf(prompt, way, "patched", index), std::move(record)))
      return error;
    if (!withControl(way))
      return Error::success();
    Object control = settings(way, prompt, index, step);
    control["run"] = "control";
    merge(control, metricsJson(step.control));
    return lab.records.add(keyOf(prompt, way, "control", index), std::move(control));
  }

  Object settings(const Way &way, size_t prompt, int64_t index, const VerifyStep &step) {
    Object record = tokenJson(lab, step.position, step.token, step.next);
    record["prompt"] = static_cast<int64_t>(prompt);
    record["step"] = index;
    record["dtype"] = way.dtype;
    record["materialized"] = way.materialized;
    return record;
  }

  Lab &lab;
  bool factored;
  std::map<std::pair<std::string, size_t>, std::vector<int64_t>> continued; ///< by dtype and prompt
};

Error runGeneration(Lab &lab) { return Generation(lab, /*factored=*/true).run(); }
Error runScaling(Lab &lab) { return Generation(lab, /*factored=*/false).run(); }

} // namespace

Experiment experiments::generationExperiment() {
  Experiment experiment;
  experiment.name = "generation";
  experiment.paper = "figures 1 and 2; appendix, additional prompts and metrics, Falcon";
  experiment.summary = "each generated token's logits: the patched model without the context\n"
                       "against the original with it; the unpatched model is the control";
  experiment.run = runGeneration;
  return experiment;
}

Experiment experiments::scalingExperiment() {
  Experiment experiment;
  experiment.name = "scaling";
  experiment.paper = "appendix, scaling update variants";
  experiment.summary = "the update variants against each other: float32, and materialised in\n"
                       "bfloat16, with the norms of their patches";
  experiment.run = runScaling;
  return experiment;
}
