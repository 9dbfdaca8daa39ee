// The gradient view (ImplicitGradient.h) of each prompt's last token: the context grows token by
// token, in float64.
#include "Experiments.h"
#include "ctxc/Experiments/ImplicitGradient.h"
#include "ctxc/Numerics/NormInversion.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/Verify.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::json::Object;

namespace {

std::string keyOf(size_t prompt, llvm::StringRef update, const char *kind, int64_t layer,
                  int64_t step) {
  return key({{"prompt", std::to_string(prompt)},
              {"update", update.str()},
              {"kind", kind},
              {"layer", std::to_string(layer)},
              {"step", std::to_string(step)}});
}

class TraceExperiment {
public:
  explicit TraceExperiment(Lab &lab) : lab(lab) {}

  Error run() {
    if (lab.isBidirectional)
      return makeError("trace: the model is bidirectional: a context that grows by a token changes "
                       "what its tokens say");
    if (lab.generate != 1)
      return makeError(
          "trace: found " + llvm::Twine(lab.generate) +
          " tokens to generate, expected 1: it looks at the last token of each prompt");
    if (lab.dtypes.size() != 1)
      return makeError("trace: found " + llvm::Twine(lab.dtypes.size()) +
                       " types of the weights, expected one: the trace is computed in float64, and "
                       "a type is how "
                       "its weights are stored");
    lab.progress.expect(lab.prompts.size() * (1 + lab.updates.size()));
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      if (isThere(prompt)) {
        lab.progress.advance(1 + lab.updates.size(), /*skipped=*/true);
        continue;
      }
      if (Error error = run(prompt))
        return error;
    }
    return Error::success();
  }

private:
  bool isThere(size_t prompt) const {
    return llvm::all_of(lab.updates, [&](const std::string &update) {
      return lab.records.has(keyOf(prompt, update, "whole", 0, 0));
    });
  }

  Error run(size_t prompt) {
    std::string name = "prompt " + std::to_string(prompt + 1) + ", ";
    llvm::ArrayRef<int64_t> tokens = lab.prompts[prompt].tokens;
    std::vector<LayerTargets> targets;
    for (const std::string &update : lab.updates) {
      auto model = lab.open({lab.dtypes.front(), update, "reference"});
      if (!model)
        return model.takeError();
      if (targets.empty()) {
        lab.progress.begin(name + "targets");
        auto collected = collectTargets((*model)->program(), (*model)->weights(), tokens);
        if (!collected)
          return collected.takeError();
        targets = std::move(*collected);
        lab.progress.advance();
      }
      lab.progress.begin(name + update);
      if (Error error = run(prompt, update, **model, targets))
        return error;
      lab.progress.advance();
    }
    return Error::success();
  }

  Error run(size_t prompt, const std::string &update, ReadyModel &model,
            llvm::ArrayRef<LayerTargets> targets) {
    RunRequest request;
    request.tokens = toInputs(lab.prompts[prompt].tokens);
    RunTimes times;
    auto step = makePatch(model.executor(), request, times);
    if (!step)
      return step.takeError();
    Patch sum;
    double telescoping = 0, apart = 0;
    int64_t undivided = 0, harmful = 0;
    for (const LayerTargets &layer : targets) {
      auto trace = traceLayer(layer, Update(*patch::symbolizeUpdateKind(update)));
      if (!trace)
        return trace.takeError();
      llvm::append_range(sum.parameters, trace->sum.parameters);
      telescoping = std::max(telescoping, trace->telescoping);
      apart = std::max(apart, differenceFrom(*trace, step->patch));
      undivided += trace->undivided.size();
      if (Error error = write(prompt, update, *trace, step->patch))
        return error;
    }
    for (const LayerObligations &layer : step->obligations)
      harmful += layer.harmful;
    // The sum of all steps, run as a patch.
    auto reduced = model.executor().start(1);
    ForwardOptions options;
    options.patch = &sum;
    options.append = false;
    const std::vector<int64_t> &tokens = lab.prompts[prompt].tokens;
    auto logits =
        model.executor().forward(*reduced, tokens.back(), int64_t(tokens.size() - 1), options);
    if (!logits)
      return logits.takeError();
    Object record{{"kind", "whole"},
                  {"prompt", int64_t(prompt)},
                  {"update", update},
                  {"telescoping", number(telescoping)},
                  {"fromAlgorithm1", number(apart)},
                  {"undivided", undivided},
                  {"harmful", harmful}};
    merge(record, metricsJson(compareLogits(step->fullLogits.doubles(), *logits)));
    return lab.records.add(keyOf(prompt, update, "whole", 0, 0), std::move(record));
  }

  Error write(size_t prompt, const std::string &update, const LayerTrace &trace,
              const Patch &patch) {
    const std::vector<int64_t> &tokens = lab.prompts[prompt].tokens;
    for (auto [i, step] : llvm::enumerate(trace.steps)) {
      Object record{{"kind", "step"},
                    {"prompt", int64_t(prompt)},
                    {"update", update},
                    {"layer", trace.layer},
                    {"step", int64_t(i)},
                    {"token", tokens[i]},
                    {"text", lab.tokenName.text(tokens[i])},
                    {"loss", number(step.loss)},
                    {"lossAfter", number(step.lossAfter)},
                    {"matrixStep", number(step.matrixStep)},
                    {"vectorStep", number(step.vectorStep)},
                    {"matrixNorm", number(step.matrixNorm)},
                    {"vectorNorm", number(step.vectorNorm)},
                    {"cosine", step.cosine ? number(*step.cosine) : nullptr},
                    {"along", number(step.along)},
                    {"aside", number(step.aside)},
                    {"toEnd", number(step.toEnd)}};
      if (Error error =
              lab.records.add(keyOf(prompt, update, "step", trace.layer, i), std::move(record)))
        return error;
    }
    Object record{{"kind", "layer"},
                  {"prompt", int64_t(prompt)},
                  {"update", update},
                  {"layer", trace.layer},
                  {"telescoping", number(trace.telescoping)},
                  {"fromAlgorithm1", number(differenceFrom(trace, patch))},
                  {"undivided", int64_t(trace.undivided.size())}};
    return lab.records.add(keyOf(prompt, update, "layer", trace.layer, 0), std::move(record));
  }

  Lab &lab;
};

Error runTrace(Lab &lab) { return TraceExperiment(lab).run(); }

} // namespace

Experiment experiments::traceExperiment() {
  Experiment experiment;
  experiment.name = "trace";
  experiment.paper = "appendix \"Deriving the Implicit Update as a Gradient Step\"";
  experiment.summary = "the gradient view, in float64: the context is absorbed token by token;\n"
                       "the trace loss of each step, whether the steps telescope to the patch,\n"
                       "and the path of the patch";
  experiment.generate = 1;
  experiment.dtypes = {"f32"};
  experiment.updates = {"least", "stable"};
  experiment.run = runTrace;
  return experiment;
}
