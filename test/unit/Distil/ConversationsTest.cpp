// What a chat template writes in front of conversations, with a system message and without.
#include "Models.h"
#include "ctxc/Session/ConversationsFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

/// Templates of several kinds, with the tiny tokenizer's special tokens in the place of theirs.
const llvm::StringMap<std::string> templates = {
    // as Qwen 2's base: nothing in front
    {"plain", "{% for m in messages %}<s>{{ m.role }} {{ m.content }}<|end|>{% endfor %}"},
    // as SmolLM2's: a message of its own
    {"default", "{% if messages[0].role != 'system' %}<s>system I help.<|end|>{% endif %}"
                "{% for m in messages %}<s>{{ m.role }} {{ m.content }}<|end|>{% endfor %}"},
    // as Gemma's: the system message is in the user's first turn
    {"merged",
     "<s>{% if messages[0].role == 'system' %}{% set first = messages[0].content + ' ' %}"
     "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}"
     "{% endif %}{% for m in rest %}<mask>{{ m.role }} {{ first if loop.first else '' }}"
     "{{ m.content }}<|end|>{% endfor %}"},
    // as Llama 3's: something is always there
    {"always", "<s>system today {% if messages[0].role == 'system' %}{{ messages[0].content }}"
               "{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}<|end|>"
               "{% for m in rest %}<mask>{{ m.role }} {{ m.content }}<|end|>{% endfor %}"},
    // tools, in front
    {"tools", "<s>{% if tools %}{{ tools | tojson }}<|end|>{% endif %}"
              "{% for m in messages %}<mask>{{ m.role }} {{ m.content }}<|end|>{% endfor %}"}};

/// The golden model with the tiny tokenizer and a template.
struct Folder {
  explicit Folder(llvm::StringRef text) {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("ctxc-unit", path));
    EXPECT_FALSE(llvm::sys::fs::copy_file(CTXC_SOURCE_DIR "/test/tokenizers/tiny/tokenizer.json",
                                          path + "/tokenizer.json"));
    write("tokenizer_config.json", "{}");
    write("chat_template.jinja",
          text.str() + "{% if add_generation_prompt %}<s>assistant {% endif %}");
    LoadOptions options;
    options.storage = DType::F32;
    options.tokenizer = path.str().str();
    model = opened(golden("llama"), options);
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string write(llvm::StringRef name, llvm::StringRef text) {
    std::string file = (path + "/" + name).str();
    std::error_code failure;
    llvm::raw_fd_ostream(file, failure) << text;
    EXPECT_FALSE(failure);
    return file;
  }
  llvm::SmallString<128> path;
  std::unique_ptr<Model> model;
};

using Turns = std::vector<ChatMessage>;

std::vector<int64_t> joined(std::vector<int64_t> front, llvm::ArrayRef<int64_t> text) {
  llvm::append_range(front, text);
  return front;
}

} // namespace

/// Of every kind, and whatever the messages are: context and text are what the template writes with
/// the opening, front and text what it writes without it.
TEST(Conversations, AreWhatTheTemplateWrites) {
  for (const auto &each : templates) {
    const llvm::StringRef name = each.first();
    Folder folder(each.second);
    Model &model = *folder.model;
    ChatOpening opening;
    if (name == "tools")
      opening.tools = llvm::cantFail(templateValue(R"([{"name": "sail", "a": 1}])", "tools"));
    else
      opening.messages = {{"system", "The king is at sea. I help."}};
    Conversations chat = llvm::cantFail(Conversations::make(model, opening));
    EXPECT_FALSE(chat.front.empty()) << name.str();
    EXPECT_LT(chat.front.size(), chat.context.size()) << name.str();
    std::vector<int64_t> end =
        llvm::cantFail(llvm::cantFail(model.tokenizer()).encodeChat("<|end|>"));
    EXPECT_EQ(chat.endOfTurn, end.back()) << name.str();
    EXPECT_TRUE(llvm::is_contained(chat.stops, end.back())) << name.str();
    const Turns conversations[] = {
        {{"user", "Who is it?"}},
        {{"user", "I help."}},
        {{"user", "The sea"}, {"assistant", "The king"}, {"user", "The end"}},
        {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}, {"user", "e"}}};
    for (const Turns &turns : conversations) {
      Turns whole = opening.messages;
      llvm::append_range(whole, turns);
      std::vector<int64_t> text = llvm::cantFail(chat.textOf(turns));
      EXPECT_EQ(joined(chat.front, text), llvm::cantFail(model.chat(turns))) << name.str();
      EXPECT_EQ(joined(chat.context, text), llvm::cantFail(model.chat(whole, opening.tools)))
          << name.str();
      EXPECT_EQ(llvm::ArrayRef(text).take_front(chat.header.size()), llvm::ArrayRef(chat.header))
          << name.str();
      TextSequence answered = llvm::cantFail(chat.textOf({turns, "The end"}));
      EXPECT_EQ(answered.prompt, int64_t(text.size()));
      EXPECT_EQ(answered.tokens.back(), chat.endOfTurn);
      EXPECT_EQ(answered.turn, int64_t(turns.size() + 1) / 2);
    }
  }
}

/// A template that writes the opening behind the user's message, one that ignores it, and one that
/// writes later turns otherwise with it.
TEST(Conversations, RefuseOtherTemplates) {
  auto refusal = [](llvm::StringRef text) {
    Folder folder(text);
    ChatOpening opening;
    opening.messages = {{"system", "The king"}};
    auto chat = Conversations::make(*folder.model, opening);
    if (!chat)
      return messageOf(chat.takeError());
    return messageOf(chat->textOf({{"user", "a"}, {"assistant", "b"}, {"user", "c"}}).takeError());
  };
  EXPECT_NE(
      refusal("{% for m in messages if m.role != 'system' %}<s>{{ m.content }}<|end|>{% endfor %}"
              "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}")
          .find("behind the user's message"),
      std::string::npos);
  EXPECT_NE(
      refusal("{% for m in messages if m.role != 'system' %}<s>{{ m.content }}<|end|>{% endfor %}")
          .find("does nothing with"),
      std::string::npos);
  EXPECT_NE(
      refusal("{% for m in messages %}<s>{% if loop.last and messages[0].role == 'system' and "
              "loop.length > 2 %}{{ messages[0].content }}{% endif %}{{ m.content }}<|end|>"
              "{% endfor %}")
          .find("otherwise where the system message is in front"),
      std::string::npos);
}
