// Which tokens of a text the reduced run keeps if nobody says what.
#include "Use.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/StepChecks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Expected;

static size_t commonPrefix(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

static bool beginsWith(ArrayRef<int64_t> tokens, ArrayRef<int64_t> front) {
  return !front.empty() && commonPrefix(tokens, front) == front.size();
}

/// What conversations have in common, whether they begin with a system message or not.
static std::vector<int64_t> frontOfConversations(Model &model) {
  std::optional<std::vector<int64_t>> front;
  const std::vector<ChatMessage> some[] = {
      {{"user", "Why?"}}, {{"user", "x"}}, {{"system", "42"}, {"user", "Tell me more."}}};
  for (ArrayRef<ChatMessage> messages : some) {
    Expected<std::vector<int64_t>> tokens = model.chat(messages);
    if (!tokens) { // a template may refuse system messages
      llvm::consumeError(tokens.takeError());
      continue;
    }
    if (front)
      front->resize(commonPrefix(*front, *tokens));
    else
      front = std::move(*tokens);
  }
  return front.value_or(std::vector<int64_t>());
}

const TextFront &Model::textFront() {
  if (!knownFront) {
    TextFront front;
    if (hasTokenizer() && !inMemory) {
      if (auto every = tokensInFront())
        front.every = std::move(*every);
      else
        llvm::consumeError(every.takeError()); // ids were given, and whoever reads texts says why
      if (hasChatTemplate())
        front.conversations = frontOfConversations(*this);
    }
    knownFront = std::move(front);
  }
  return *knownFront;
}

Expected<std::optional<Sink>> Model::sink(MeasureLengths measure) {
  if (knownSink)
    return *knownSink;
  auto byExecutor = [&](ArrayRef<int64_t> tokens) -> Expected<std::vector<std::vector<double>>> {
    Expected<Use> inUse = use();
    if (!inUse)
      return inUse.takeError();
    Expected<Executor &> executor = runner();
    if (!executor)
      return executor.takeError();
    return lengthsOf(*executor, tokens);
  };
  if (!measure)
    measure = byExecutor;
  Expected<std::optional<Sink>> found = findSink(measure, idsOf(runnable), runnable.positions);
  if (!found)
    return found.takeError();
  knownSink = *found;
  return *knownSink;
}

/// Whether the text begins with the configuration's begin-of-sequence token. A token that a text
/// has in other places too begins turns, not texts.
static bool beginsSequence(const Checkpoint *checkpoint, ArrayRef<int64_t> tokens) {
  auto id = checkpoint ? checkpoint->config().getInteger("bos_token_id") : std::nullopt;
  return id && tokens.front() == *id && llvm::count(tokens, *id) == 1;
}

Expected<KeptTokens> Model::keptByDefault(ArrayRef<Input> inputs, const TextFront &front,
                                          MeasureLengths measure) {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  const std::vector<int64_t> tokens = tokensOf(inputs);
  Expected<const Program &> program = this->program();
  if (!program)
    return program.takeError();
  // A context of nothing but kept tokens would leave nothing to a patch.
  if (tokens.size() < 3 || isBidirectional(*program))
    return KeptTokens();
  const TextFront &own = textFront();
  if (beginsWith(tokens, own.every) || beginsWith(tokens, front.every) ||
      beginsSequence(modelCheckpoint.get(), tokens))
    return KeptTokens();
  Expected<std::optional<Sink>> sink = this->sink(measure);
  if (!sink) {
    // Made-up texts may be what the model does not run for, such as a program that was exported for
    // one length. What stands in the way of the text itself, its own run says.
    llvm::consumeError(sink.takeError());
    return KeptTokens();
  }
  if (!*sink)
    return KeptTokens();
  int64_t count = 1;
  for (ArrayRef<int64_t> each : {ArrayRef(own.conversations), ArrayRef(front.conversations)})
    if (beginsWith(tokens, each))
      count = std::max<int64_t>(count, each.size());
  KeptTokens kept;
  for (int64_t at = 0, end = std::min<int64_t>(count, tokens.size() - 2); at < end; ++at)
    kept.positions.push_back(at);
  kept.sink = **sink;
  kept.why = llvm::formatv("{0}, and attention rests on a run's first token, whose state after "
                           "layer {1} is {2:F0} times as long as others",
                           count > 1 ? "every conversation begins so"
                                     : "no token is in front of every text",
                           (*sink)->layer, (*sink)->times);
  return kept;
}
