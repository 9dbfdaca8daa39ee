#include "ctxc/Session/WrittenConversations.h"
#include "ctxc/Session/TextsFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

namespace {

/// A conversation that is being written.
struct Growing {
  std::vector<ChatMessage> turns;
  std::vector<std::string> questions;
  TextSequence text; ///< up to the last answer
};

} // namespace

/// Every second conversation has one turn, the others two, three and so on up to `most`, in a
/// circle.
static int64_t turnsOf(size_t number, int64_t most) {
  return number % 2 == 0 || most < 2 ? 1 : 2 + int64_t(number / 2) % (most - 1);
}

static std::vector<Growing> begun(const ConversationsRequest &request) {
  std::vector<Growing> all;
  size_t next = 0;
  for (size_t answers = 0; answers < request.answers;) {
    Growing one;
    for (int64_t turn = turnsOf(all.size(), request.mostTurns); turn > 0; --turn)
      one.questions.push_back(request.questions[next++ % request.questions.size()]);
    answers += one.questions.size();
    all.push_back(std::move(one));
  }
  return all;
}

/// Has the model answer question `turn` of those that have one.
static Error answer(Model &model, const Conversations &chat, const ConversationsRequest &request,
                    size_t turn, std::vector<Growing> &all, Sampled &sampled) {
  SampleRequest sample;
  sample.context = chat.context;
  sample.length = request.length;
  sample.stops = chat.stops;
  sample.temperature = request.temperature;
  sample.seed = request.seed * 16 + turn;
  sample.written = request.written;
  std::vector<Growing *> asked;
  for (Growing &each : all) {
    if (each.questions.size() <= turn)
      continue;
    each.turns.push_back({"user", each.questions[turn]});
    if (Error error = chat.textOf(each.turns).moveInto(sample.prompts.emplace_back()))
      return error;
    asked.push_back(&each);
  }
  if (asked.empty())
    return Error::success();
  auto written = model.sample(sample);
  if (!written)
    return written.takeError();
  sampled.tokens += written->tokens;
  sampled.seconds += written->seconds;
  for (auto [each, text] : llvm::zip_equal(asked, written->texts)) {
    auto said = llvm::ArrayRef(text.tokens).drop_front(text.prompt);
    auto message = chat.messageOf(said);
    if (!message)
      return message.takeError();
    each->turns.push_back({"assistant", *message});
    const bool isWhole = int64_t(said.size()) < request.length;
    each->text = std::move(text);
    each->text.turn = turn + 1;
    if (isWhole)
      each->text.tokens.push_back(chat.endOfTurn);
  }
  return Error::success();
}

Expected<Sampled> ctxc::sampleConversations(Model &model, const Conversations &chat,
                                            const ConversationsRequest &request) {
  if (request.questions.empty())
    return makeError("there is no question that the model could answer");
  std::vector<Growing> all = begun(request);
  Sampled sampled;
  for (int64_t turn = 0; turn < request.mostTurns; ++turn)
    if (Error error = answer(model, chat, request, turn, all, sampled))
      return std::move(error);
  for (Growing &each : all)
    if (hasPrediction(each.text))
      sampled.texts.push_back(std::move(each.text));
  return sampled;
}

Expected<std::vector<std::string>> ctxc::writeQuestions(Model &model, const Conversations &chat,
                                                        llvm::ArrayRef<std::string> known,
                                                        size_t count, double temperature,
                                                        uint64_t seed) {
  constexpr int64_t longest = 48,
                    rounds =
                        3; // tokens of a question; the model writes again if it wrote no question
  llvm::StringSet<> seen;
  for (const std::string &each : known)
    seen.insert(each);
  std::vector<std::string> questions;
  for (int64_t round = 0; round < rounds && questions.size() < count; ++round) {
    SampleRequest sample;
    sample.context = chat.context;
    sample.prompts.assign(count - questions.size(), chat.header);
    sample.length = longest;
    sample.stops = chat.stops;
    sample.temperature = temperature;
    sample.seed = seed + round;
    auto written = model.sample(sample);
    if (!written)
      return written.takeError();
    for (const TextSequence &text : written->texts) {
      auto said = llvm::ArrayRef(text.tokens).drop_front(text.prompt);
      auto question = chat.messageOf(said);
      if (!question)
        return question.takeError();
      if (int64_t(said.size()) < longest && !question->empty() && seen.insert(*question).second)
        questions.push_back(std::move(*question));
    }
  }
  if (questions.empty() && count > 0)
    return makeError("the model wrote no question in the user's place that is new and ends");
  return questions;
}
