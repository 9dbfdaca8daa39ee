//===- ChatTemplate.h - messages as the text that a model was trained on --===//
//
// The Jinja template that a checkpoint has for conversations, rendered as transformers'
// apply_chat_template does it.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOKENIZER_CHATTEMPLATE_H
#define CTXC_TOKENIZER_CHATTEMPLATE_H

#include "ctxc/Template/Template.h"
#include "llvm/Support/Error.h"
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace ctxc {

struct ChatMessage {
  std::string role; ///< "system", "user", "assistant"
  std::string content;
  /// Further members, such as tool_calls, in their order.
  std::vector<std::pair<std::string, jinja::Value>> others = {};
};

/// A JSON text as a template sees it, with the members of objects in their order. Messages begin
/// with `name`. Errors: those of StrictJson.
llvm::Expected<jinja::Value> templateValue(llvm::StringRef json, llvm::StringRef name);

class ChatTemplate {
public:
  /// The template of a directory: chat_template.jinja, or else the chat_template of
  /// tokenizer_config.json (of several, the one named "default"); or the template of a GGUF file,
  /// or of the directory that contains a tokenizer's file. Errors: there is none; it is malformed.
  static llvm::Expected<ChatTemplate> open(llvm::StringRef path);

  /// The text of `messages` and the beginning of the answer (add_generation_prompt); strftime_now
  /// sees `now`. Tokenizer::encodeChat understands the special tokens in it. `tools` is a list, or
  /// None. Errors: the template refuses the messages; those of jinja::Template.
  llvm::Expected<std::string> render(llvm::ArrayRef<ChatMessage> messages, const std::tm &now,
                                     const jinja::Value &tools = jinja::Value::none()) const;

private:
  explicit ChatTemplate(jinja::Template parsed) : parsed(std::move(parsed)) {}
  static llvm::Expected<ChatTemplate> openGguf(llvm::StringRef path);

  jinja::Template parsed;
  /// bos_token, eos_token and others that the checkpoint names.
  std::vector<std::pair<std::string, std::string>> specialTokens;
};

/// The local time, for ChatTemplate::render.
std::tm currentTime();

} // namespace ctxc

#endif // CTXC_TOKENIZER_CHATTEMPLATE_H
