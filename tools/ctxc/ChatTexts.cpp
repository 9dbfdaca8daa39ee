#include "ChatTexts.h"
#include "ctxc/Session/ConversationsFile.h"
#include "ctxc/Session/WrittenConversations.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// With fewer questions the model adds some: what is fitted to few holds for these alone.
static constexpr size_t enoughQuestions = 30, fewestForCard = 6;
static constexpr int64_t answersForCard = 16;

std::vector<OptionSpec> driver::chatOptions() {
  return {{"--chat", "",
           "the context is what the model's chat template writes in front of a user's message;\n"
           "the texts are conversations. With --system, --messages or both"},
          reads({"--system", "FILE", "with --chat: the text of the system message"}),
          reads({"--messages", "FILE",
                 "with --chat: a JSON list of messages with role and content, such as turns of an\n"
                 "example; or an object with messages and tools"})};
}

Error driver::checkChatContext(const Arguments &arguments) {
  const bool isChat = arguments.has("--chat");
  for (StringRef option : {"--system", "--messages"})
    if (arguments.has(option) && !isChat)
      return makeError(option + ": applies to --chat, which is not given");
  for (StringRef option : {"--context", "--context-tokens"})
    if (arguments.has(option) && isChat)
      return makeError(option +
                       ": with --chat, --system FILE or --messages FILE gives the context; "
                       "leave it out");
  if (isChat && !arguments.has("--system") && !arguments.has("--messages"))
    return makeError("--chat: expected --system FILE, --messages FILE or both with it");
  return Error::success();
}

/// Adds questions that the model writes, where `given` are few, or as many as --more-prompts says.
static Error addQuestions(const Arguments &arguments, Model &model, const Conversations &chat,
                          const ChatWriting &writing, size_t given,
                          std::vector<std::string> &questions, DistilTexts &all) {
  const bool isFew = given < enoughQuestions;
  auto more = arguments.integer("--more-prompts", 0, 1 << 20, isFew ? enoughQuestions - given : 0);
  if (!more || *more == 0)
    return more.takeError();
  auto written =
      writeQuestions(model, chat, questions, *more, writing.temperature, writing.seed * 5 + 3);
  if (!written)
    return makeError("--more-prompts: " + llvm::toString(written.takeError()));
  if (isFew && given > 0 && !arguments.has("--more-prompts"))
    err() << "ctxc: warning: --prompts: found " << counted(given, "question")
          << ", and with fewer than " << enoughQuestions
          << " an adapter holds for these alone; the model adds "
          << counted(written->size(), "question") << " (--more-prompts 0: none)\n";
  all.writtenPrompts = written->size();
  llvm::append_range(questions, *written);
  return Error::success();
}

/// A fifth of the questions, and some at least, only judge.
static std::vector<std::string> takeForCard(std::vector<std::string> &questions) {
  const size_t count =
      std::min(std::max(questions.size() / 5, fewestForCard), questions.size() / 2);
  std::vector<std::string> taken(questions.end() - count, questions.end());
  questions.resize(questions.size() - count);
  return taken;
}

Error driver::writeChatTexts(const Arguments &arguments, Model &model, const Conversations &chat,
                             const ChatWriting &writing, DistilTexts &all) {
  ConversationsRequest request;
  auto turns = arguments.integer("--turns", 1, 16, request.mostTurns);
  if (!turns)
    return turns.takeError();
  request.mostTurns = *turns;
  request.length = writing.length;
  request.temperature = writing.temperature;
  request.written = progressOnTerminal();
  std::vector<std::string> questions, judges;
  if (auto path = arguments.get("--prompts"))
    if (Error error = readQuestions(*path, "--prompts").moveInto(questions))
      return error;
  shuffle(questions, writing.seed);
  const size_t given = questions.size();
  const bool needsJudges = !arguments.has("--held-out");
  if (needsJudges) // before others are added, which are like the fitted ones
    judges = takeForCard(questions);
  if (Error error = addQuestions(arguments, model, chat, writing, given, questions, all))
    return error;
  if (needsJudges && judges.empty())
    judges = takeForCard(questions);
  auto write = [&](std::vector<std::string> asked, size_t answers, uint64_t stream,
                   std::vector<TextSequence> &texts) -> Error {
    request.questions = std::move(asked);
    request.answers = answers;
    request.seed = writing.seed * 3 + stream;
    auto sampled = sampleConversations(model, chat, request);
    if (!sampled)
      return sampled.takeError();
    all.sampledTokens += sampled->tokens;
    all.seconds += sampled->seconds;
    texts = std::move(sampled->texts);
    return Error::success();
  };
  if (needsJudges)
    if (Error error = write(std::move(judges), answersForCard, 2, all.heldOut))
      return error;
  return write(std::move(questions), std::max<int64_t>(writing.tokens / writing.length, 1), 1,
               all.fitted);
}
