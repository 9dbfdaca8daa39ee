// How exact a patch stays in another program: each update's patches, replayed in arithmetic that is
// not the one they were made in, and compared with the error that was predicted for them.
//
//   same           the kernels that made it, in a run of its own
//   threads        the same with another number of threads; bit-equal by design
//   materialised   added to the weights, in their type
//   reference      float64, sums in another order
//   transformers   the stored patch in another program (--judge)
//
// Each is compared with the full run in its own arithmetic.
#include "Experiments.h"
#include "PatchJudge.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <map>
#include <thread>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// Replays patches in one kind of arithmetic.
class Replay {
public:
  Replay(StringRef name, Executor &executor, bool materialize)
      : name(name), executor(executor), materialize(materialize) {}

  /// The logits after `tokens` of the original model with the context; kept for the next update.
  Expected<ArrayRef<double>> full(ArrayRef<int64_t> tokens) {
    auto [found, isNew] = known.try_emplace(tokens.vec());
    if (!isNew)
      return ArrayRef(found->second);
    std::unique_ptr<Run> run = executor.start(tokens.size(), Keeps::Seen);
    if (Error error = readContext(executor, *run, tokens))
      return std::move(error);
    auto logits = executor.forward(*run, tokens.back(), tokens.size() - 1, ForwardOptions());
    if (!logits)
      return logits.takeError();
    found->second = std::move(*logits);
    return ArrayRef(found->second);
  }

  /// The patched model's logits without the context, compared with these.
  Expected<TokenMetrics> measure(ArrayRef<int64_t> tokens, ArrayRef<int64_t> kept,
                                 const Patch *patch) {
    auto baseline = full(tokens);
    if (!baseline)
      return baseline.takeError();
    std::unique_ptr<Run> run = executor.start(kept.size() + 1);
    if (!kept.empty()) {
      auto ids = llvm::map_to_vector(kept, [&](int64_t at) { return tokens[at]; });
      if (auto before = executor.forward(*run, ids, kept, ForwardOptions()); !before)
        return before.takeError();
    }
    ForwardOptions options;
    options.patch = patch;
    options.materialize = patch && materialize;
    auto logits = executor.forward(*run, tokens.back(), tokens.size() - 1, options);
    if (!logits)
      return logits.takeError();
    return compareLogits(*baseline, *logits);
  }

  const StringRef name;

private:
  Executor &executor;
  bool materialize;
  std::map<std::vector<int64_t>, std::vector<double>> known;
};

/// One token's patch.
struct Made {
  size_t prompt;
  int64_t step;
  std::vector<int64_t> tokens;
  std::string update, file;
  PatchNorm norm;
  double predicted;
};

class Portability {
public:
  explicit Portability(Lab &lab) : lab(lab), judge(lab.option("judge", "")) {}

  Error run() {
    for (const std::string &dtype : lab.dtypes)
      lab.progress.expect(units(dtype));
    for (const std::string &dtype : lab.dtypes)
      if (Error error = run(dtype))
        return error;
    return Error::success();
  }

private:
  /// The judge computes in float32, whatever the weights' type, and judges that type alone.
  bool isJudged(StringRef dtype) const { return !judge.empty() && dtype == "f32"; }
  /// Weights in their stored type may be quantised, and then cannot hold a patch.
  bool isMaterialized(StringRef dtype) const { return !dtype.empty(); }
  llvm::SmallVector<StringRef> replayNames(StringRef dtype) const {
    llvm::SmallVector<StringRef> names = {"same", "threads", "reference"};
    if (isMaterialized(dtype))
      names.push_back("materialised");
    if (isJudged(dtype))
      names.push_back("transformers");
    return names;
  }
  int64_t units(StringRef dtype) const {
    return lab.updates.size() * lab.prompts.size() * lab.generate * replayNames(dtype).size();
  }

  Error run(const std::string &dtype) {
    bool complete = llvm::all_of(lab.updates,
                                 [&](const std::string &update) { return isThere(dtype, update); });
    if (complete) {
      lab.progress.advance(units(dtype), /*skipped=*/true);
      return Error::success();
    }
    // Another number of threads than the machine has.
    int64_t threads = std::thread::hardware_concurrency() > 1 ? 1 : 2;
    auto other = lab.open(setting(dtype, "least", "compiled", threads));
    if (!other)
      return other.takeError();
    auto reference = lab.open(setting(dtype, "least", "reference", 0));
    if (!reference)
      return reference.takeError();
    Replay threadsReplay("threads", (*other)->executor(), false);
    Replay referenceReplay("reference", (*reference)->executor(), false);
    std::vector<Made> made;
    for (const std::string &update : lab.updates) {
      lab.progress.begin(dtype + " " + update);
      auto model = lab.open(setting(dtype, update, "compiled", 0));
      if (!model)
        return model.takeError();
      Replay same("same", (*model)->executor(), false);
      Replay materialized("materialised", (*model)->executor(), true);
      llvm::SmallVector<Replay *> replays = {&same, &threadsReplay, &referenceReplay};
      if (isMaterialized(dtype))
        replays.push_back(&materialized);
      if (Error error = run(**model, dtype, update, replays, made))
        return error;
    }
    return isJudged(dtype) ? ask(dtype, made) : Error::success();
  }

  static Setting setting(const std::string &dtype, const std::string &update, const char *backend,
                         int64_t threads) {
    Setting setting;
    setting.dtype = dtype;
    setting.update = update;
    setting.backend = backend;
    setting.threads = threads;
    return setting;
  }

  std::string keyOf(size_t prompt, StringRef dtype, StringRef update, StringRef replay,
                    int64_t step) const {
    return key({{"prompt", std::to_string(prompt)},
                {"dtype", dtype.str()},
                {"update", update.str()},
                {"replay", replay.str()},
                {"step", std::to_string(step)}});
  }

  bool isThere(StringRef dtype, StringRef update) const {
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt)
      for (int64_t step = 0; step < lab.generate; ++step)
        for (StringRef name : replayNames(dtype))
          if (!lab.records.has(keyOf(prompt, dtype, update, name, step)))
            return false;
    return true;
  }

  Error run(ReadyModel &model, const std::string &dtype, const std::string &update,
            ArrayRef<Replay *> replays, std::vector<Made> &all) {
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      auto tokens = continueGreedily(model.executor(), lab.prompts[prompt], lab.generate);
      if (!tokens)
        return tokens.takeError();
      int64_t first = lab.prompts[prompt].tokens.size() - 1;
      auto each = [&](int64_t position, const Patch &patch, ArrayRef<LayerObligations>,
                      ArrayRef<double> replayError) -> Error {
        Made made{prompt, position - first, {}, update, "", {}, 0};
        made.tokens = ArrayRef(*tokens).take_front(position + 1).vec();
        for (double error : replayError)
          made.predicted = std::max(made.predicted, error);
        auto table = measure(patch, lab.layers, model.norms());
        if (!table)
          return table.takeError();
        made.norm = table->total;
        for (Replay *replay : replays)
          if (Error error = measureOne(*replay, patch, dtype, made))
            return error;
        if (isJudged(dtype))
          if (Error error = store(patch, dtype, made))
            return error;
        all.push_back(std::move(made));
        return Error::success();
      };
      if (Error error = patchLast(model.executor(), *tokens, lab.prompts[prompt].kept,
                                  tokens->size() - first, each))
        return error;
    }
    return Error::success();
  }

  Error measureOne(Replay &replay, const Patch &patch, StringRef dtype, const Made &made) {
    std::string name = keyOf(made.prompt, dtype, made.update, replay.name, made.step);
    lab.progress.advance();
    if (lab.records.has(name))
      return Error::success();
    auto metrics = replay.measure(made.tokens, lab.prompts[made.prompt].kept, &patch);
    if (!metrics)
      return metrics.takeError();
    Object record = describe(dtype, made, replay.name);
    merge(record, metricsJson(*metrics));
    return lab.records.add(name, std::move(record));
  }

  Object describe(StringRef dtype, const Made &made, StringRef replay) const {
    int64_t position = made.tokens.size() - 1;
    Object record{{"prompt", static_cast<int64_t>(made.prompt)},
                  {"step", made.step},
                  {"position", position},
                  {"token", made.tokens.back()},
                  {"text", lab.tokenName.text(made.tokens.back())},
                  {"dtype", dtype},
                  {"update", made.update},
                  {"replay", replay},
                  {"predicted", number(made.predicted)}};
    merge(record, normJson(made.norm));
    return record;
  }

  Error store(const Patch &patch, StringRef dtype, Made &made) {
    std::string folder = lab.directory + "/patches";
    if (std::error_code code = llvm::sys::fs::create_directories(folder))
      return makeError(folder + ": " + code.message());
    made.file = folder + "/" + made.update + "-" + std::to_string(made.prompt) + "-" +
                std::to_string(made.step) + ".safetensors";
    PatchMetadata metadata;
    metadata.modelHash = lab.hash;
    metadata.tokens = made.tokens;
    metadata.position = made.tokens.size() - 1;
    metadata.kept = lab.prompts[made.prompt].kept;
    metadata.update = made.update;
    metadata.dtype = dtype.str();
    return writePatchFile(made.file, patch, metadata);
  }

  /// All patches at once, as loading the model takes the other program longest.
  Error ask(StringRef dtype, ArrayRef<Made> made) {
    lab.progress.begin("transformers");
    std::vector<std::string> files;
    for (const Made &each : made)
      files.push_back(each.file);
    auto opinions = judgePatches(judge, lab.model.name(), files, lab.directory);
    if (!opinions)
      return opinions.takeError();
    for (auto [each, opinion] : llvm::zip(made, *opinions)) {
      Object record = describe(dtype, each, "transformers");
      auto patched = opinion.getNumber("linf_patched");
      record["linf"] = patched ? number(*patched) : nullptr;
      record["match"] = opinion.getInteger("argmax_full") == opinion.getInteger("argmax_patched");
      auto control = opinion.getNumber("linf_control");
      record["controlLinf"] = control ? number(*control) : nullptr;
      lab.progress.advance();
      if (Error error = lab.records.add(
              keyOf(each.prompt, dtype, each.update, "transformers", each.step), std::move(record)))
        return error;
    }
    return Error::success();
  }

  Lab &lab;
  std::string judge;
};

Error runPortability(Lab &lab) { return Portability(lab).run(); }

} // namespace

Experiment experiments::portabilityExperiment() {
  Experiment experiment;
  experiment.name = "portability";
  experiment.paper = "not in the paper";
  experiment.summary = "each update's patches in other arithmetic (other threads, materialised,\n"
                       "float64, transformers): the error against the predicted one";
  experiment.generate = 2;
  experiment.dtypes = {"f32"};
  experiment.options = {{"judge", "COMMAND",
                         "portability: another program that judges stored patches, such as\n"
                         "'build/judges/bin/python test/judge/judge.py'"}};
  experiment.run = runPortability;
  return experiment;
}
