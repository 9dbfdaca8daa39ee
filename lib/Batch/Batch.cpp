#include "ctxc/Batch/Batch.h"
#include "FullRun.h"
#include "Record.h"
#include "Store.h"
#include "ctxc/Session/Model.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/GivenRun.h"

using namespace ctxc;
using namespace ctxc::batch;
using llvm::Error;
using llvm::Expected;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// Ascending token ids, the shorter first where one begins as the other does; then lines.
bool comesBefore(const PromptLine &a, const PromptLine &b) {
  auto [x, y] = std::mismatch(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  if (x != a.tokens.end() && y != b.tokens.end())
    return x->token() < y->token();
  return std::make_pair(a.tokens.size(), a.number) < std::make_pair(b.tokens.size(), b.number);
}

class Batch {
public:
  Batch(Model &model, const BatchRequest &request, Executor &executor, PatchNorms &norms,
        Store &store)
      : model(model), request(request), executor(executor), norms(norms), store(store),
        full(executor) {}

  Expected<BatchResult> run(int64_t lines) {
    Expected<LineFile> file = LineFile::open(request.prompts);
    if (!file)
      return file.takeError();
    std::vector<Line> window;
    for (bool more = true; more;) {
      Line line;
      Expected<bool> next = file->next(line);
      if (!next)
        return next.takeError();
      more = *next;
      int64_t index = (line.number - 1) / request.window;
      int64_t number = line.number;
      bool isAsked = line.isTooLong || !llvm::StringRef(line.text).trim().empty();
      if (more && isAsked && store.isOwn(index) && !store.isSettled(index))
        window.push_back(std::move(line));
      if (more && number % request.window)
        continue;
      if (Error error = runWindow(index, window))
        return std::move(error);
      window.clear();
      if (request.progress)
        request.progress(std::min(number, lines), lines);
    }
    Expected<BatchCounts> counts = store.finish();
    if (!counts)
      return counts.takeError();
    result.counts = *counts;
    return result;
  }

private:
  Error runWindow(int64_t index, llvm::ArrayRef<Line> texts) {
    if (texts.empty())
      return Error::success();
    Expected<std::set<LinePosition>> recorded = store.begin(index);
    if (!recorded)
      return recorded.takeError();
    std::vector<PromptLine> lines;
    for (const Line &text : texts) {
      PromptLine line = readPromptLine(text, request, model);
      llvm::erase_if(line.positions, [&](int64_t position) {
        return recorded->count({line.number, position}) > 0;
      });
      bool isDone = line.error.empty() && line.positions.empty();
      if (!isDone && !recorded->count({line.number, -1}))
        lines.push_back(std::move(line));
    }
    llvm::sort(lines, comesBefore);
    for (const PromptLine &line : lines)
      if (Error error = runLine(line))
        return error;
    return store.end();
  }

  Error runLine(const PromptLine &line) {
    Error error = line.error.empty() ? make(line) : makeError(line.error);
    if (!error)
      return error;
    if (isFailed || error.isA<Cancelled>())
      return error;
    std::string text = llvm::toString(std::move(error));
    return add({line.number, -1}, errorRecord(line, std::nullopt, text));
  }

  /// Makes the records of a line. Where it fails and `isFailed` is not set, the line is to blame.
  Error make(const PromptLine &line) {
    RunRequest run;
    run.tokens = line.tokens;
    run.kept = line.kept;
    run.startLayer = model.options().planning.startLayer;
    run.headless = model.isHeadless();
    if (executor.isBidirectional())
      return makeWhole(line, run);
    run.positions = line.positions;
    if (Error error = checkRequest(run, executor))
      return error;
    int64_t end = line.positions.back() + 1; // the tokens that are run
    Expected<int64_t> held = full.prepare(line.tokens, line.positions.front(), end);
    if (!held)
      return held.takeError();
    if (Error error = line.make.metrics ? compare(line, run) : patchAlone(line, run)) {
      full.forget();
      return error;
    }
    result.tokens += end;
    result.read += end - *held;
    full.holds(llvm::ArrayRef(line.tokens).take_front(end));
    return Error::success();
  }

  Error compare(const PromptLine &line, const RunRequest &run) {
    return verifyEach(
        executor, run, full.state(), norms,
        [&](const VerifyStep &step, const Patch &patch) { return keep(line, run, step, patch); });
  }

  Error patchAlone(const PromptLine &line, const RunRequest &run) {
    return makePatches(executor, run, full.state(), [&](const TokenPatch &given) -> Error {
      Expected<Patch> patch = given.patch();
      if (!patch)
        return patch.takeError();
      return keepPatch(line, run, given.position, *patch, given.obligations, given.replayError);
    });
  }

  /// In a bidirectional model, whose tokens see all others: nothing is shared, and the last token
  /// alone can be patched.
  Error makeWhole(const PromptLine &line, const RunRequest &run) {
    int64_t last = line.tokens.size() - 1;
    if (line.positions != std::vector<int64_t>{last})
      return makeError("the model is bidirectional: the last position alone can be patched");
    result.tokens += line.tokens.size();
    result.read += line.tokens.size();
    if (!line.make.metrics) {
      Expected<PatchStep> step = model.patch(run);
      return step ? keepPatch(line, run, last, step->patch, step->obligations, step->replayError)
                  : step.takeError();
    }
    // Of the same patch, made once more: verify does not tell it.
    Expected<VerifyResult> verified = model.verify(run, 1, [](const VerifyStep &) {});
    if (!verified)
      return verified.takeError();
    Expected<PatchStep> step = model.patch(run);
    return step ? keep(line, run, verified->steps.front(), step->patch) : step.takeError();
  }

  Error keepPatch(const PromptLine &line, const RunRequest &run, int64_t position,
                  const Patch &patch, llvm::ArrayRef<LayerObligations> obligations,
                  llvm::ArrayRef<double> replayError) {
    VerifyStep step;
    step.token = line.tokens[position].token();
    step.position = position;
    Expected<PatchNormTable> table = measure(patch, executor.layers(), norms);
    if (!table)
      return table.takeError();
    step.norm = table->total;
    for (auto [norm, zeros, error] : llvm::zip(table->layers, obligations, replayError))
      step.layers.push_back({norm, zeros, error});
    return keep(line, run, step, patch);
  }

  /// Adds what is known of a position. A patch that no file can hold is an error of that position.
  Error keep(const PromptLine &line, const RunRequest &run, const VerifyStep &step,
             const Patch &patch) {
    LinePosition place{line.number, step.position};
    if (!line.make.patch)
      return add(place, stepRecord(line, step));
    if (Error error = checkPatch(patch))
      return add(place, errorRecord(line, step.position, llvm::toString(std::move(error))));
    Expected<PatchMetadata> metadata = model.metadata(run, step.position);
    if (!metadata)
      return metadata.takeError();
    return add(place, stepRecord(line, step), &patch, &*metadata);
  }

  Error add(LinePosition place, Object record, const Patch *patch = nullptr,
            const PatchMetadata *metadata = nullptr) {
    Error error = store.add(place, std::move(record), patch, metadata);
    isFailed = bool(error);
    result.added += !isFailed;
    return error;
  }

  Model &model;
  const BatchRequest &request;
  Executor &executor;
  PatchNorms &norms;
  Store &store;
  FullRun full;
  bool isFailed = false; ///< the directory cannot be written
  BatchResult result;
};

/// All that decides what the files hold.
Expected<Object> settingsOf(Model &model, const BatchRequest &request, const FileFacts &facts) {
  Expected<VerifySettings> about = model.verifySettings();
  if (!about)
    return about.takeError();
  Array make;
  for (auto [word, isAsked] :
       {std::pair("patch", request.make.patch), std::pair("metrics", request.make.metrics),
        std::pair("layers", request.make.layers)})
    if (isAsked)
      make.push_back(word);
  return Object{{"prompts", facts.digest},
                {"lines", facts.lines},
                {"make", std::move(make)},
                {"positions", request.allPositions ? "all" : "last"},
                {"window", request.window},
                {"parts", request.parts},
                {"shardBytes", int64_t(request.shardBytes)},
                {"model", about->modelHash},
                {"plan", about->plan},
                {"startLayer", about->request.startLayer},
                {"update", about->update},
                {"dtype", about->dtype},
                {"backend", about->backend},
                {"tokenizer", model.options().tokenizer}};
}

} // namespace

Expected<BatchResult> ctxc::runBatch(Model &model, const BatchRequest &request) {
  if (PromptProducts prompts = model.options().prompts; prompts != PromptProducts::Exact)
    return llvm::make_error<OptionError>(
        prompts == PromptProducts::Split ? Option::SplitPrompts : Option::RoundedPrompts,
        "what a batch gives would depend on which tokens are read together; leave it out");
  Expected<FileFacts> facts = factsOf(request.prompts);
  if (!facts)
    return facts.takeError();
  Expected<Object> settings = settingsOf(model, request, *facts);
  if (!settings)
    return settings.takeError();
  auto store = Store::open(request, *settings);
  if (!store)
    return store.takeError();
  Expected<Executor &> executor = model.executor();
  if (!executor)
    return executor.takeError();
  Expected<PatchNorms &> norms = model.norms();
  if (!norms)
    return norms.takeError();
  return Batch(model, request, *executor, *norms, **store).run(facts->lines);
}
