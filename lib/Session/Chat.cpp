// Conversations: their tokens, and which of them a system message changes.
#include "Use.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Expected;

llvm::Error Model::openChatTemplate() {
  if (chatTemplate)
    return llvm::Error::success();
  Expected<std::string> place = tokenizerPath();
  if (!place)
    return place.takeError();
  Expected<ChatTemplate> opened = ChatTemplate::open(*place);
  if (!opened)
    return opened.takeError();
  chatTemplate.emplace(std::move(*opened));
  chatTime = currentTime(); // the same for all renderings
  return llvm::Error::success();
}

bool Model::hasChatTemplate() {
  llvm::Error error = openChatTemplate();
  const bool has = !error;
  llvm::consumeError(std::move(error));
  return has;
}

Expected<std::vector<int64_t>> Model::chat(ArrayRef<ChatMessage> messages,
                                           const jinja::Value &tools) {
  Expected<Tokenizer &> tokenizer = this->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  if (llvm::Error error = openChatTemplate())
    return std::move(error);
  Expected<std::string> text = chatTemplate->render(messages, chatTime, tools);
  if (!text)
    return text.takeError();
  return tokenizer->encodeChat(*text);
}

/// A text of one letter that `text` neither begins nor ends with, so that no token at the edges of
/// the two is the same.
static std::string otherThan(llvm::StringRef text) {
  text = text.trim();
  for (const char *letter : {"x", "y", "z"})
    if (!text.starts_with(letter) && !text.ends_with(letter))
      return letter;
  llvm_unreachable("two edges have at most two letters");
}

Expected<std::vector<int64_t>> Model::positionsBesideSystem(ArrayRef<ChatMessage> messages) {
  assert(!messages.empty() && messages.front().role == "system" && "expected a system message");
  Expected<std::vector<int64_t>> all = chat(messages);
  if (!all)
    return all.takeError();
  std::vector<ChatMessage> changed = messages.vec();
  changed.front().content = otherThan(messages.front().content);
  Expected<std::vector<int64_t>> other = chat(changed);
  if (!other)
    return other.takeError();
  if (*other == *all)
    return makeError(path + ": the chat template does nothing with a system message");

  ArrayRef<int64_t> whole = *all;
  size_t begin = whole.size(), end = whole.size(); // of what the two have in common
  auto compare = [&](ArrayRef<int64_t> tokens) {
    size_t most = std::min(whole.size(), tokens.size()), behind = 0, before = 0;
    while (behind < most && whole.rbegin()[behind] == tokens.rbegin()[behind])
      ++behind;
    while (before < most - behind && whole[before] == tokens[before])
      ++before;
    begin = std::min(begin, before);
    end = std::min(end, behind);
  };
  compare(*other);
  if (Expected<std::vector<int64_t>> without = chat(messages.drop_front()))
    compare(*without);
  else
    llvm::consumeError(without.takeError()); // a template may insist on a system message

  std::vector<int64_t> positions;
  for (size_t i = 0; i < whole.size(); ++i)
    if (i < begin || i >= whole.size() - end)
      positions.push_back(int64_t(i));
  return positions;
}
