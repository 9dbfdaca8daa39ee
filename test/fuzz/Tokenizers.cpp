// Tokenizers and chat templates: what can be read is used on some texts, and on a part of the file
// itself.
#include "Reader.h"
#include "ctxc/Tokenizer/ChatTemplate.h"
#include "ctxc/Tokenizer/Tokenizer.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

static void use(const Tokenizer &tokenizer, StringRef bytes) {
  for (StringRef text : {StringRef(""), StringRef("The king's 1234  cafés\n\tü \xff\xe2\x96\x81"),
                         bytes.take_back(48)})
    for (bool addSpecial : {false, true}) {
      auto ids = tokenizer.encode(text, addSpecial);
      if (!heard(ids))
        continue;
      for (int64_t id : *ids) {
        require(id >= 0 && id < tokenizer.size(), "an id is in the vocabulary's range");
        (void)tokenizer.piece(id);
      }
      hear(tokenizer.decode(*ids).takeError());
    }
  hear(tokenizer.decode({0, tokenizer.size() - 1}).takeError());
  hear(tokenizer.decode({-1}).takeError());
  (void)tokenizer.piece(tokenizer.size());
}

void fuzz::readTokenizerJson(StringRef bytes) {
  auto tokenizer = parseTokenizerJson(bytes, "tokenizer.json");
  if (heard(tokenizer))
    use(**tokenizer, bytes);
}

void fuzz::readSentencePiece(StringRef bytes) {
  auto tokenizer = parseSentencePiece(bytes, "tokenizer.model", std::nullopt);
  if (heard(tokenizer))
    use(**tokenizer, bytes);
}

/// A conversation as a template sees it.
static std::vector<std::pair<std::string, jinja::Value>> conversation() {
  auto message = [](const char *role, const char *content) {
    return jinja::Value::record({{"role", role}, {"content", content}});
  };
  return {
      {"messages", jinja::Value::list({message("system", "Be brief."), message("user", " Hi é\n"),
                                       message("assistant", "<think>x</think>Ho")})},
      {"bos_token", jinja::Value::string("<s>")},
      {"add_generation_prompt", jinja::Value::boolean(true)}};
}

void fuzz::readTemplate(StringRef bytes) {
  std::tm now = {};
  now.tm_year = 126;
  now.tm_mday = 1;
  if (bytes.starts_with("{\"")) {
    scratch("chat/tokenizer.json", "{}");
    scratch("chat/tokenizer_config.json", bytes);
    auto found = ChatTemplate::open(scratchPath("chat"));
    if (heard(found))
      hear(found->render({{"user", "Hi"}}, now).takeError());
    return;
  }
  auto parsed = jinja::Template::parse(bytes, "chat_template.jinja");
  if (!heard(parsed))
    return;
  jinja::RenderLimits limits;
  limits.steps = 1 << 16;
  auto text = parsed->render(conversation(), now, limits);
  if (heard(text))
    require(text->size() <= 64 * limits.steps, "a rendered text is within its limit");
}
