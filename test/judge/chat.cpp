// judge-chat JOBS SECONDS: renders conversations, for chat_templates.py. JOBS is a JSON array of
// {"path": …, "messages": [{"role": …, "content": …}…]}; the output is an array of {"text": …,
// "ids": […]} or {"error": …}. SECONDS since 1970 is what the templates see as now.
#include "ctxc/Tokenizer/ChatTemplate.h"
#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace ctxc;

static Expected<json::Object> run(const json::Object &job, const std::tm &now) {
  StringRef path = job.getString("path").value_or("");
  std::vector<ChatMessage> messages;
  for (const json::Value &each : *job.getArray("messages")) {
    const json::Object &message = *each.getAsObject();
    messages.push_back({message.getString("role")->str(), message.getString("content")->str()});
  }
  Expected<ChatTemplate> chat = ChatTemplate::open(path);
  if (!chat)
    return chat.takeError();
  Expected<std::string> text = chat->render(messages, now);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(path);
  if (!tokenizer)
    return tokenizer.takeError();
  auto ids = (*tokenizer)->encodeChat(*text);
  if (!ids)
    return ids.takeError();
  return json::Object{{"text", *text}, {"ids", json::Array(*ids)}};
}

int main(int argc, char **argv) {
  std::time_t seconds;
  if (argc != 3 || StringRef(argv[2]).getAsInteger(10, seconds)) {
    errs() << "usage: judge-chat JOBS SECONDS\n";
    return 2;
  }
  auto file = MemoryBuffer::getFile(argv[1]);
  if (!file) {
    errs() << "judge-chat: error: " << argv[1] << ": " << file.getError().message() << "\n";
    return 1;
  }
  Expected<json::Value> jobs = json::parse((*file)->getBuffer());
  if (!jobs) {
    errs() << "judge-chat: error: " << toString(jobs.takeError()) << "\n";
    return 1;
  }
  std::tm now = {};
  ::localtime_r(&seconds, &now);
  json::Array answers;
  for (const json::Value &job : *jobs->getAsArray()) {
    Expected<json::Object> answer = run(*job.getAsObject(), now);
    if (answer)
      answers.push_back(std::move(*answer));
    else
      answers.push_back(json::Object{{"error", toString(answer.takeError())}});
  }
  outs() << json::Value(std::move(answers)) << "\n";
  return 0;
}
