#include "DistilTrial.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Session/ConversationsFile.h"
#include "ctxc/Session/WrittenConversations.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "llvm/ADT/StringMap.h"
#include <ctime>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;

namespace {

using Tokens = std::vector<int64_t>;

/// Has the model write texts, one for each prompt; streams have other random numbers.
Expected<std::vector<TextSequence>> writeTexts(Model &model, llvm::ArrayRef<int64_t> front,
                                               std::vector<Tokens> prompts, int64_t length,
                                               uint64_t stream) {
  SampleRequest request;
  request.context = front.vec();
  request.prompts = std::move(prompts);
  request.length = length;
  if (llvm::Error error = model.stopTokens().moveInto(request.stops))
    return std::move(error);
  request.seed = stream;
  auto written = model.sample(request);
  if (!written)
    return written.takeError();
  llvm::erase_if(written->texts, [](const TextSequence &text) { return !hasPrediction(text); });
  return std::move(written->texts);
}

/// `count` prompts, each as often as the others.
std::vector<Tokens> cycled(llvm::ArrayRef<Tokens> prompts, int64_t count) {
  std::vector<Tokens> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(prompts[i % prompts.size()]);
  return all;
}

/// Conversations in the place of texts.
Error addConversations(Model &model, const ContextEntry &entry, const TrialSizes &sizes,
                       uint64_t seed, Trial &trial) {
  const Conversations &chat = *trial.context.chat;
  std::vector<std::string> questions;
  if (!entry.prompts.empty())
    if (Error error = readQuestions(entry.prompts, "contexts").moveInto(questions))
      return error;
  shuffle(questions, seed);
  const size_t apart = entry.heldOut.empty() ? questions.size() / 5 : 0;
  auto texts = [&](llvm::StringRef given, llvm::ArrayRef<std::string> asked, int64_t tokens,
                   uint64_t stream) -> Expected<std::vector<TextSequence>> {
    if (!given.empty())
      return readConversationTexts(given, "contexts", chat);
    ConversationsRequest request;
    request.questions = asked.vec();
    request.answers = std::max<int64_t>(tokens / sizes.length, 2);
    request.length = sizes.length;
    request.seed = 3 * seed + stream;
    auto written = sampleConversations(model, chat, request);
    if (!written)
      return written.takeError();
    return std::move(written->texts);
  };
  llvm::ArrayRef<std::string> all = questions;
  auto fitted = texts(entry.text, all.drop_back(apart), sizes.fitted, 1);
  if (!fitted)
    return fitted.takeError();
  if (!entry.text.empty()) {
    shuffle(*fitted, seed);
    trial.fitted = firstTokens(*fitted, sizes.fitted);
  } else {
    trial.fitted = std::move(*fitted);
  }
  return texts(entry.heldOut, all.take_back(apart), sizes.judged, 2).moveInto(trial.about.texts);
}

Error addTexts(Model &model, const ContextEntry &entry, const TrialSizes &sizes, uint64_t seed,
               Trial &trial) {
  if (trial.context.chat)
    return addConversations(model, entry, sizes, seed, trial);
  std::vector<Tokens> prompts;
  if (!entry.prompts.empty()) {
    if (Error error = readPrompts(entry.prompts, "contexts", model).moveInto(prompts))
      return error;
    shuffle(prompts, seed);
  }
  const bool isGiven = !entry.text.empty(), isJudgeGiven = !entry.heldOut.empty();
  const size_t apart = isJudgeGiven ? 0 : prompts.size() / 5;
  llvm::ArrayRef<Tokens> own = llvm::ArrayRef(prompts).drop_back(apart);
  llvm::ArrayRef<Tokens> judges = llvm::ArrayRef(prompts).take_back(apart);
  auto fitted = isGiven ? readTexts(entry.text, "contexts", model)
                        : writeTexts(model, trial.context.context,
                                     cycled(own, std::max<int64_t>(sizes.fitted / sizes.length, 1)),
                                     sizes.length, 3 * seed + 1);
  if (!fitted)
    return fitted.takeError();
  if (isGiven)
    shuffle(*fitted, seed);
  trial.fitted = firstTokens(*fitted, sizes.fitted);
  auto judged = isJudgeGiven
                    ? readTexts(entry.heldOut, "contexts", model)
                    : writeTexts(model, trial.context.context,
                                 cycled(judges, std::max<int64_t>(sizes.judged / sizes.length, 2)),
                                 sizes.length, 3 * seed + 2);
  return std::move(judged).moveInto(trial.about.texts);
}

} // namespace

Expected<Trial> experiments::makeTrial(Model &model, const ContextEntry &entry,
                                       const TrialSizes &sizes, uint64_t seed) {
  constexpr size_t unrelated = 16, length = 32;
  Trial trial;
  auto context =
      entry.isChat()
          ? readChatContext({entry.system, entry.messages, "contexts", "contexts"}, model)
      : entry.context.empty() ? contextOfTokens(entry.tokens, model)
                              : readContext(entry.context, "contexts", model);
  if (!context)
    return context.takeError();
  trial.context = std::move(*context);
  trial.about.context = trial.context.context;
  trial.about.front = trial.context.front;
  trial.about.seed = seed;
  if (Error error = addTexts(model, entry, sizes, seed, trial))
    return std::move(error);
  // Without a token in front the model cannot begin, and conversations are what should change.
  if (trial.context.front.empty() || trial.context.chat)
    return std::move(trial);
  auto written =
      writeTexts(model, trial.context.front, std::vector<Tokens>(unrelated), length, 3 * seed);
  if (!written)
    return written.takeError();
  trial.about.unrelated = std::move(*written);
  trial.isProtected = takeHalf(trial.about.unrelated);
  return std::move(trial);
}

namespace {

/// The sum of patches of many tokens, as an adapter.
class PatchSum {
public:
  /// False where a patch cannot be a part of an adapter.
  bool add(const Patch &patch);
  Adapter mean() const;
  int64_t count = 0;

private:
  struct Factors {
    int64_t rows = 0, columns = 0;
    std::vector<std::vector<double>> u, v;
  };
  llvm::StringMap<Factors> matrices;
  llvm::StringMap<std::vector<double>> vectors;
};

} // namespace

bool PatchSum::add(const Patch &patch) {
  ++count;
  for (const ParameterPatch &part : patch.parameters) {
    if (splitSliceName(part.parameter))
      return false;
    if (part.kind == ParameterPatch::Kind::Rank1) {
      Factors &factors = matrices[part.parameter];
      factors.rows = part.shape[0];
      factors.columns = part.shape[1];
      factors.u.push_back(part.u);
      factors.v.push_back(part.v);
      continue;
    }
    if (part.shape.size() != 1)
      return false;
    std::vector<double> &sum = vectors[part.parameter];
    sum.resize(part.delta.size());
    for (auto [to, x] : llvm::zip(sum, part.delta))
      to += x;
  }
  return true;
}

Adapter PatchSum::mean() const {
  Adapter adapter;
  for (const auto &each : matrices) {
    const Factors &factors = each.second;
    const int64_t rank = factors.u.size();
    MatrixChange change{each.first().str(), factors.rows, factors.columns, rank, {}, {}};
    for (int64_t i = 0; i < factors.rows; ++i)
      for (const std::vector<double> &u : factors.u)
        change.left.push_back(float(u[i] / count));
    for (const std::vector<double> &v : factors.v)
      change.right.insert(change.right.end(), v.begin(), v.end());
    adapter.matrices.push_back(std::move(change));
  }
  for (const auto &each : vectors) {
    VectorChange change{each.first().str(), {}};
    for (double x : each.second)
      change.delta.push_back(float(x / count));
    adapter.vectors.push_back(std::move(change));
  }
  return adapter;
}

/// The mean of the exact patches of the texts' tokens, each of which takes away the context alone:
/// what is before it of its text stays. None where patches are no adapter.
static Expected<std::optional<Adapter>> meanOfPatches(Model &model, const Trial &trial,
                                                      int64_t tokens, int64_t &taken) {
  PatchSum sum;
  bool fits = true;
  const int64_t context = trial.context.context.size();
  for (const TextSequence &text : firstTokens(trial.fitted, tokens)) {
    RunRequest request;
    Tokens all = trial.context.context;
    llvm::append_range(all, text.tokens);
    request.tokens = toInputs(all);
    const int64_t front = trial.context.front.size(), end = all.size();
    for (int64_t at = 0; at < front; ++at)
      request.kept.push_back(at);
    for (int64_t at = context; at < end; ++at)
      request.positions.push_back(at);
    llvm::append_range(request.kept, llvm::ArrayRef(request.positions).drop_back());
    Error error = model.positions(request, [&](const TokenPatch &token) -> Error {
      auto patch = token.patch();
      if (!patch)
        return patch.takeError();
      fits &= sum.add(*patch);
      return Error::success();
    });
    if (error)
      return std::move(error);
    if (!fits)
      return std::nullopt;
  }
  taken = sum.count;
  Adapter mean = sum.mean();
  mean.prefix = trial.context.front;
  return std::optional(std::move(mean));
}

/// Adds to `request` the tokens that stay in front.
static Error keep(Model &model, Trial &trial, const Method &method, DistilRequest &request) {
  const int64_t front = trial.context.front.size();
  const int64_t count = method.kept * (trial.context.context.size() - front);
  if (method.name.starts_with("cache")) {
    if (trial.readScores.empty())
      if (Error error = model.readScores(trial.context.context, front, trial.fitted)
                            .moveInto(trial.readScores))
        return error;
    request.prefix = trial.context.context;
    llvm::append_range(request.seen, llvm::seq<int64_t>(0, front));
    llvm::append_range(request.seen, mostTelling(trial.readScores, front, count));
    return Error::success();
  }
  Tokens &prefix = request.prefix;
  if (method.name == "cut") {
    llvm::append_range(prefix, llvm::ArrayRef(trial.context.context).slice(front, count));
    return Error::success();
  }
  if (trial.tellingScores.empty())
    if (Error error = model.tellingScores(trial.context.context, front, trial.fitted)
                          .moveInto(trial.tellingScores))
      return error;
  for (int64_t place : mostTelling(trial.tellingScores, front, count))
    prefix.push_back(trial.context.context[place]);
  return Error::success();
}

/// The adapter; none where the method does not apply.
static Expected<std::optional<Adapter>> make(Model &model, Trial &trial, const Method &method,
                                             Attempt &attempt) {
  if (method.name == "patches")
    return meanOfPatches(model, trial, method.tokens, attempt.tokens);
  DistilRequest request;
  request.prefix = trial.context.front;
  request.front = trial.context.front;
  if (method.kept > 0)
    if (Error error = keep(model, trial, method, request))
      return std::move(error);
  if (method.name == "kept" || method.name == "cut" || method.name == "cache") {
    Adapter adapter;
    adapter.prefix = request.prefix;
    adapter.seen = request.seen;
    return std::optional(std::move(adapter));
  }
  request.context = trial.context.context;
  request.texts = method.tokens ? firstTokens(trial.fitted, method.tokens) : trial.fitted;
  request.unrelated = trial.isProtected;
  request.fit.rank = method.rank;
  request.fit.passes = method.passes;
  auto made = model.distil(request);
  if (!made)
    return made.takeError();
  attempt.tokens = made->tokens;
  return std::optional(std::move(made->adapter));
}

Expected<std::optional<Attempt>> experiments::attempt(Model &model, Trial &trial,
                                                      const Method &method) {
  Attempt attempt;
  const std::clock_t start = std::clock();
  auto adapter = [&] {
    Timer timer(attempt.seconds);
    return make(model, trial, method, attempt);
  }();
  if (!adapter)
    return adapter.takeError();
  attempt.processorSeconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!*adapter)
    return std::nullopt;
  attempt.front = (*adapter)->inFront() - trial.context.front.size();
  if (!trial.judge)
    trial.judge = std::make_unique<Judge>(trial.about);
  if (Error error = model.evaluate(**adapter, *trial.judge).moveInto(attempt.card))
    return std::move(error);
  return std::optional(std::move(attempt));
}
