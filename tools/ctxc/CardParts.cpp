#include "CardParts.h"
#include "DistilTexts.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::ArrayRef;
using llvm::Expected;

static constexpr size_t exampleCount = 4;
static constexpr int64_t exampleLength = 32;

/// Text where there is a tokenizer, else ids.
static Expected<std::string> textOf(ArrayRef<int64_t> tokens, Model &model) {
  if (!model.hasTokenizer()) {
    std::string ids;
    for (int64_t token : tokens)
      ids += std::to_string(token) + " ";
    return ids;
  }
  auto tokenizer = model.tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  return tokenizer->decode(tokens);
}

/// `answer` as far as it is `full`, and the rest. A character may be of tokens of both: it is then
/// in the rest.
static Expected<AnswerText> answerText(ArrayRef<int64_t> answer, ArrayRef<int64_t> full,
                                       Model &model) {
  size_t same = 0;
  while (same < answer.size() && same < full.size() && answer[same] == full[same])
    ++same;
  auto all = textOf(answer, model), begin = textOf(answer.take_front(same), model);
  if (!all || !begin)
    return llvm::joinErrors(all.takeError(), begin.takeError());
  size_t common = 0;
  while (common < begin->size() && common < all->size() && (*begin)[common] == (*all)[common])
    ++common;
  return AnswerText{all->substr(0, common), all->substr(common)};
}

/// A prompt without what the chat template writes around each question: all begin and end alike.
static ArrayRef<int64_t> questionOf(ArrayRef<int64_t> prompt, ArrayRef<Example> all) {
  size_t before = prompt.size(), behind = prompt.size();
  for (const Example &other : all) {
    if (ArrayRef(other.prompt) == prompt)
      continue;
    before = std::min<size_t>(before, std::mismatch(prompt.begin(), prompt.end(),
                                                    other.prompt.begin(), other.prompt.end())
                                              .first -
                                          prompt.begin());
    behind = std::min<size_t>(behind, std::mismatch(prompt.rbegin(), prompt.rend(),
                                                    other.prompt.rbegin(), other.prompt.rend())
                                              .first -
                                          prompt.rbegin());
  }
  return before + behind < prompt.size() ? prompt.drop_front(before).drop_back(behind) : prompt;
}

Expected<std::vector<ExampleText>> driver::exampleTexts(Model &model, const Adapter &adapter,
                                                        const EvaluateRequest &about,
                                                        bool areConversations) {
  EvaluateRequest first = about; // a question by itself is the easiest to read
  llvm::erase_if(first.texts, [](const TextSequence &text) { return text.turn > 1; });
  auto stops = model.stopTokens();
  if (!stops)
    return stops.takeError();
  auto found = model.examples(adapter, first.texts.empty() ? about : first, exampleCount,
                              exampleLength, *stops);
  if (!found)
    return found.takeError();
  std::vector<ExampleText> texts;
  for (const Example &example : *found) {
    auto prompt = textOf(
        areConversations ? questionOf(example.prompt, *found) : ArrayRef(example.prompt), model);
    auto full = answerText(example.full, example.full, model),
         adapted = answerText(example.adapted, example.full, model),
         plain = answerText(example.plain, example.full, model);
    if (!prompt || !full || !adapted || !plain)
      return llvm::joinErrors(
          prompt.takeError(),
          llvm::joinErrors(full.takeError(),
                           llvm::joinErrors(adapted.takeError(), plain.takeError())));
    texts.push_back({std::move(*prompt), std::move(*full), std::move(*adapted), std::move(*plain)});
  }
  return texts;
}

llvm::Error driver::addFailureTexts(Model &model, const EvaluateRequest &about, const Card &card,
                                    CardSettings &settings) {
  constexpr size_t shown = 8; // tokens of a text
  if (card.worst) {
    ArrayRef<int64_t> tokens = about.texts[card.worst->text].tokens;
    if (llvm::Error error =
            textOf(tokens.take_front(2 * shown), model).moveInto(settings.worstText))
      return error;
  }
  for (const Failure &failure : card.failures) {
    auto before = ArrayRef(about.texts[failure.text].tokens).take_front(failure.at);
    auto text = textOf(before.take_back(shown), model), full = textOf({failure.full}, model),
         adapted = textOf({failure.adapted}, model);
    if (!text || !full || !adapted)
      return llvm::joinErrors(text.takeError(),
                              llvm::joinErrors(full.takeError(), adapted.takeError()));
    settings.failures.push_back({std::move(*text), std::move(*full), std::move(*adapted)});
  }
  return llvm::Error::success();
}

CurvePoint driver::pointOf(int64_t rank, int64_t tokens, const Card &card) {
  return {rank, tokens, card.numbers, card.all.share(), card.shareInterval};
}

Expected<std::vector<CurvePoint>> driver::curveOf(Model &model, const DistilRequest &request,
                                                  const EvaluateRequest &about, CurvePoint own) {
  std::vector<CurvePoint> curve;
  auto add = [&](const DistilRequest &other) -> llvm::Error {
    auto made = model.distil(other);
    if (!made)
      return made.takeError();
    auto card = model.evaluate(made->adapter, about);
    if (!card)
      return card.takeError();
    curve.push_back(pointOf(other.fit.rank, made->tokens, *card));
    return llvm::Error::success();
  };
  DistilRequest other = request;
  for (int64_t rank = 1; rank < request.fit.rank; rank *= 4) {
    other.fit.rank = rank;
    if (llvm::Error error = add(other))
      return std::move(error);
  }
  other.fit.rank = request.fit.rank;
  for (size_t part : {4, 2}) {
    other.texts = llvm::ArrayRef(request.texts).take_front(request.texts.size() / part);
    int64_t tokens = 0;
    for (const TextSequence &text : other.texts)
      tokens += text.tokens.size();
    if (tokens < std::max<int64_t>(request.fit.rank, 1))
      continue;
    if (llvm::Error error = add(other))
      return std::move(error);
  }
  curve.push_back(own);
  return curve;
}
