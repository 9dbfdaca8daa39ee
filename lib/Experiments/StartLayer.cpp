// From which layer on must a model be patched? Every start layer, as the paper's ablation.
#include "Experiments.h"
#include <map>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::json::Object;

namespace {

class StartLayer {
public:
  explicit StartLayer(Lab &lab) : lab(lab) {}

  Error run() {
    lab.progress.expect(lab.dtypes.size() * lab.updates.size() * lab.layers * lab.prompts.size() *
                        lab.generate);
    for (const std::string &dtype : lab.dtypes)
      for (const std::string &update : lab.updates)
        if (Error error = run(dtype, update))
          return error;
    return Error::success();
  }

private:
  /// One prompt from one layer on.
  struct Unit {
    std::string dtype, update;
    size_t prompt;
    int64_t layer;
    bool control;
  };

  static std::string keyOf(const Unit &unit, int64_t step) {
    return key({{"prompt", std::to_string(unit.prompt)},
                {"dtype", unit.dtype},
                {"update", unit.update},
                {"layer", std::to_string(unit.layer)},
                {"step", std::to_string(step)}});
  }
  static std::string controlKey(const Unit &unit, int64_t step) {
    return key({{"prompt", std::to_string(unit.prompt)},
                {"dtype", unit.dtype},
                {"run", "control"},
                {"step", std::to_string(step)}});
  }

  bool isThere(const Unit &unit) const {
    for (int64_t step = 0; step < lab.generate; ++step)
      if (!lab.records.has(keyOf(unit, step)) ||
          (unit.control && !lab.records.has(controlKey(unit, step))))
        return false;
    return true;
  }

  Error run(const std::string &dtype, const std::string &update) {
    std::unique_ptr<ReadyModel> model;
    for (int64_t layer = 0; layer < lab.layers; ++layer) {
      lab.progress.begin(dtype + " " + update + " from layer " + llvm::Twine(layer));
      for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
        Unit unit{dtype, update, prompt, layer, update == lab.updates.front() && layer == 0};
        if (isThere(unit)) {
          lab.progress.advance(lab.generate, /*skipped=*/true);
          continue;
        }
        if (!model) {
          auto opened = lab.open({dtype, update});
          if (!opened)
            return opened.takeError();
          model = std::move(*opened);
        }
        if (Error error = run(*model, unit))
          return error;
      }
    }
    return Error::success();
  }

  Error run(ReadyModel &model, const Unit &unit) {
    std::vector<int64_t> tokens = lab.prompts[unit.prompt].tokens;
    RunRequest request;
    request.kept = lab.prompts[unit.prompt].kept;
    request.startLayer = unit.layer;
    request.materialize = roundsPatches(unit.dtype);
    request.control = unit.control;
    Error error = Error::success();
    int64_t step = 0;
    auto observe = [&](const VerifyStep &made) {
      if (!error)
        error = write(unit, step++, made, request.materialize);
      lab.progress.advance();
    };
    // In one pass where possible: the tokens are generated once for all layers and updates.
    bool once = !request.materialize && !model.executor().isBidirectional();
    if (once) {
      std::vector<int64_t> &all = continued[{unit.dtype, unit.prompt}];
      if (all.empty()) {
        auto made = continueGreedily(model.executor(), lab.prompts[unit.prompt], lab.generate);
        if (!made)
          return made.takeError();
        all = std::move(*made);
      }
      for (int64_t position = tokens.size() - 1; position < int64_t(all.size()); ++position)
        request.positions.push_back(position);
      tokens = all;
    }
    request.tokens = toInputs(tokens);
    auto result = once ? verifyEach(model.executor(), request, model.norms(), observe)
                       : verify(model.executor(), request, lab.generate, model.norms(), observe);
    if (!result)
      return llvm::joinErrors(std::move(error), result.takeError());
    return error;
  }

  Error write(const Unit &unit, int64_t index, const VerifyStep &step, bool materialized) {
    auto common = [&] {
      Object record = tokenJson(lab, step.position, step.token, step.next);
      record["prompt"] = static_cast<int64_t>(unit.prompt);
      record["step"] = index;
      record["dtype"] = unit.dtype;
      record["materialized"] = materialized;
      return record;
    };
    Object record = common();
    record["update"] = unit.update;
    record["startLayer"] = unit.layer;
    record["run"] = "patched";
    merge(record, patchedJson(step));
    if (Error error = lab.records.add(keyOf(unit, index), std::move(record)))
      return error;
    if (!unit.control)
      return Error::success();
    Object control = common();
    control["run"] = "control";
    merge(control, metricsJson(step.control));
    return lab.records.add(controlKey(unit, index), std::move(control));
  }

  Lab &lab;
  std::map<std::pair<std::string, size_t>, std::vector<int64_t>> continued; ///< by dtype and prompt
};

Error runStartLayer(Lab &lab) { return StartLayer(lab).run(); }

} // namespace

Experiment experiments::startLayerExperiment() {
  Experiment experiment;
  experiment.name = "start-layer";
  experiment.paper = "appendix, ablation: starting layer depth";
  experiment.summary = "patches that begin at each layer: how closely the model then follows the\n"
                       "full run, and how large the patches are";
  experiment.generate = 4;
  experiment.updates = {"least", "naive", "stable"};
  experiment.run = runStartLayer;
  return experiment;
}
