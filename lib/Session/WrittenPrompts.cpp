#include "ctxc/Session/WrittenPrompts.h"
#include "ctxc/Session/TextsFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using llvm::Expected;
using llvm::StringRef;

/// Longer lists would cost more than they add.
static constexpr size_t longestList = 10;
/// Of what the model writes, in tokens: a prompt and the empty line behind it.
static constexpr int64_t longestPrompt = 64;

/// How prompts stand in the list: as quotations with an empty line behind each; where all are of
/// one line, as lines.
enum class ListForm { Lines, Quotations };

static std::string listed(StringRef prompt, ListForm form) {
  if (form == ListForm::Lines)
    return (prompt + "\n").str();
  std::string all;
  for (StringRef line : llvm::split(prompt, '\n'))
    all += ("> " + line + "\n").str();
  return all + "\n";
}

/// The first prompt of a list that goes on with `text`; empty where it does not end, or is none.
static std::string firstPrompt(StringRef text, ListForm form) {
  const size_t end = text.find(form == ListForm::Lines ? "\n" : "\n\n");
  if (end == StringRef::npos)
    return "";
  if (form == ListForm::Lines)
    return text.take_front(end).trim().str();
  // The mark of the first line is what the list ended with.
  const std::string whole = (">" + text.take_front(end)).str();
  std::string all;
  for (StringRef line : llvm::split(whole, '\n')) {
    if (!line.consume_front(">"))
      return "";
    line.consume_front(" ");
    all += line.str() + "\n";
  }
  return StringRef(all).trim().str();
}

namespace {

class List {
public:
  static Expected<List> make(Model &model, const PromptsRequest &request);
  /// What the model reads behind the context before it writes prompt `number`.
  Expected<std::vector<int64_t>> before(size_t number) const;
  /// The prompt that the model wrote; empty where it is none, or not new.
  Expected<std::vector<int64_t>> take(llvm::ArrayRef<int64_t> written);

private:
  List(Model &model, Tokenizer &tokenizer, uint64_t seed)
      : model(model), tokenizer(tokenizer), seed(seed) {}

  Model &model;
  Tokenizer &tokenizer;
  uint64_t seed;
  std::vector<std::string> given;
  llvm::StringSet<> known;
  ListForm form = ListForm::Lines;
  bool beginsWithLine = false; ///< most of the given prompts begin with the end of a line
};

} // namespace

Expected<List> List::make(Model &model, const PromptsRequest &request) {
  auto tokenizer = model.tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  List list(model, *tokenizer, request.seed);
  size_t lines = 0;
  for (const std::vector<int64_t> &prompt : request.given) {
    auto text = tokenizer->decode(prompt);
    if (!text)
      return text.takeError();
    lines += StringRef(*text).starts_with("\n");
    const std::string trimmed = StringRef(*text).trim().str();
    if (trimmed.find('\n') != std::string::npos)
      list.form = ListForm::Quotations;
    if (!trimmed.empty() && list.known.insert(trimmed).second)
      list.given.push_back(trimmed);
  }
  if (list.given.empty())
    return makeError("all prompts are empty, so that the model cannot write others like them");
  list.beginsWithLine = 2 * lines > request.given.size();
  return std::move(list);
}

Expected<std::vector<int64_t>> List::before(size_t number) const {
  std::vector<std::string> some = given;
  shuffle(some, seed + number);
  some.resize(std::min(some.size(), longestList));
  std::string text = form == ListForm::Lines ? "\n" : "\n\n";
  for (const std::string &prompt : some)
    text += listed(prompt, form);
  if (form == ListForm::Quotations)
    text += ">";
  return model.tokenizeInside(text);
}

Expected<std::vector<int64_t>> List::take(llvm::ArrayRef<int64_t> written) {
  auto text = tokenizer.decode(written);
  if (!text)
    return text.takeError();
  const std::string prompt = firstPrompt(*text, form);
  if (prompt.empty() || !known.insert(prompt).second)
    return std::vector<int64_t>();
  return model.tokenizeInside((beginsWithLine ? "\n" : "") + prompt);
}

Expected<std::vector<std::vector<int64_t>>> ctxc::writePrompts(Model &model,
                                                               const PromptsRequest &request) {
  constexpr size_t rounds = 3; // the model writes again what is not new
  auto list = List::make(model, request);
  if (!list)
    return list.takeError();
  std::vector<std::vector<int64_t>> all;
  size_t number = 0;
  for (size_t round = 0; round < rounds && all.size() < request.count; ++round) {
    SampleRequest sample;
    sample.context = request.context;
    sample.length = longestPrompt;
    sample.temperature = request.temperature;
    sample.stops = request.stops;
    sample.seed = request.seed + round;
    for (size_t missing = request.count - all.size(); missing > 0; --missing) {
      auto before = list->before(number++);
      if (!before)
        return before.takeError();
      sample.prompts.push_back(std::move(*before));
    }
    auto sampled = model.sample(sample);
    if (!sampled)
      return sampled.takeError();
    for (const TextSequence &text : sampled->texts) {
      auto prompt = list->take(llvm::ArrayRef(text.tokens).drop_front(text.prompt));
      if (!prompt)
        return prompt.takeError();
      if (!prompt->empty())
        all.push_back(std::move(*prompt));
    }
  }
  if (all.empty() && request.count > 0)
    return makeError("the model wrote no prompt that differs from the given ones");
  return std::move(all);
}
