// The paper's main experiment: generation with each token's patch in place of the context, compared
// token by token with generation with it. `scaling` is the same, of the updates of its appendix.
#include "Experiments.h"
#include "ctxc/Verify/Verify.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// One way of running a prompt.
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
  explicit Generation(Lab &lab) : lab(lab) {}

  Error run() {
    lab.progress.expect(waysOf().size() * lab.prompts.size() * lab.generate);
    for (const Way &way : waysOf()) {
      if (Error error = run(way))
        return error;
    }
    return Error::success();
  }

private:
  /// Materialised only where rounding to the type loses something that float32 keeps.
  std::vector<Way> waysOf() const {
    std::vector<Way> ways;
    for (const std::string &dtype : lab.dtypes)
      for (const std::string &update : lab.updates) {
        ways.push_back({dtype, update, false});
        if (dtype == "bf16" || dtype == "f16")
          ways.push_back({dtype, update, true});
      }
    return ways;
  }

  /// The control is the same with every update: the first one's runs include it.
  bool withControl(const Way &way) const {
    return way.update == lab.updates.front() && !way.materialized;
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
    std::unique_ptr<OpenedModel> model;
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      if (isThere(prompt, way)) {
        lab.progress.advance(lab.generate, /*skipped=*/true);
        continue;
      }
      if (!model) {
        auto opened = lab.models.open({way.dtype, way.update});
        if (!opened)
          return opened.takeError();
        model = std::move(*opened);
      }
      if (Error error = run(*model, way, prompt))
        return error;
    }
    return Error::success();
  }

  Error run(OpenedModel &model, const Way &way, size_t prompt) {
    RunRequest request;
    request.tokens = toInputs(lab.prompts[prompt].tokens);
    request.materialize = way.materialized;
    request.control = withControl(way);
    Error error = Error::success();
    int64_t step = 0;
    auto result =
        verify(model.executor(), request, lab.generate, model.norms(), [&](const VerifyStep &made) {
          if (!error)
            error = write(way, prompt, step++, made);
          lab.progress.advance();
        });
    if (!result)
      return llvm::joinErrors(std::move(error), result.takeError());
    return error;
  }

  Error write(const Way &way, size_t prompt, int64_t index, const VerifyStep &step) {
    Object record = settings(way, prompt, index, step);
    record["update"] = way.update;
    record["run"] = "patched";
    merge(record, metricsJson(step.patched));
    merge(record, normJson(step.norm));
    double replay = 0;
    int64_t harmful = 0;
    for (const LayerReport &layer : step.layers) {
      replay = std::max(replay, layer.replayError);
      harmful += layer.obligations.harmful;
    }
    record["replayError"] = number(replay);
    record["harmful"] = harmful;
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
    Object record = tokenJson(lab.models, step.position, step.token, step.next);
    record["prompt"] = static_cast<int64_t>(prompt);
    record["step"] = index;
    record["dtype"] = way.dtype;
    record["materialized"] = way.materialized;
    return record;
  }

  Lab &lab;
};

Error runGeneration(Lab &lab) { return Generation(lab).run(); }

} // namespace

Experiment experiments::generationExperiment() {
  Experiment experiment;
  experiment.name = "generation";
  experiment.paper = "figures 1 and 2; appendix, additional prompts and metrics, Falcon";
  experiment.summary = "each generated token's logits, patched without the context against\n"
                       "original with it; without a patch as the control";
  experiment.run = runGeneration;
  return experiment;
}
