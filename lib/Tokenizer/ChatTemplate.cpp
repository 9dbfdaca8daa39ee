#include "ctxc/Tokenizer/ChatTemplate.h"
#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace ctxc;

static constexpr uint64_t maxTemplateBytes = 64 << 20;

/// The names under which a template sees special tokens, and GGUF's names of them.
static constexpr std::pair<StringLiteral, StringLiteral> specialNames[] = {
    {"bos_token", "bos"},       {"eos_token", "eos"}, {"unk_token", "unknown"},
    {"sep_token", "seperator"}, // as llama.cpp spells it
    {"pad_token", "padding"},   {"cls_token", "cls"}, {"mask_token", "mask"}};

static std::string fileIn(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

std::tm ctxc::currentTime() {
  std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  return local;
}

namespace {

/// What of tokenizer_config.json, or of special_tokens_map.json, a template is made of.
struct TokenizerConfig {
  std::optional<std::string> text; ///< the template
  std::vector<std::string> names;  ///< of several templates
  std::vector<std::pair<std::string, std::string>> specialTokens;
};

} // namespace

/// "<s>", or {"content": "<s>", …}; none for null and others.
static std::optional<std::string> contentOf(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return text->str();
  if (const json::Object *object = value.getAsObject())
    if (std::optional<StringRef> text = object->getString("content"))
      return text->str();
  return std::nullopt;
}

static Error readTemplates(const json::Value &value, StringRef path, TokenizerConfig &config) {
  if (std::optional<StringRef> text = value.getAsString()) {
    config.text = text->str();
    return Error::success();
  }
  const json::Array *all = value.getAsArray();
  for (size_t i = 0; all && i < all->size(); ++i) {
    const json::Object *each = (*all)[i].getAsObject();
    auto name = each ? each->getString("name") : std::nullopt;
    auto text = each ? each->getString("template") : std::nullopt;
    if (!name || !text)
      return makeError(path + ": chat_template[" + Twine(i) +
                       "]: expected an object with the texts 'name' and 'template'");
    config.names.push_back(name->str());
    if (*name == "default")
      config.text = text->str();
  }
  if (!all && value.kind() != json::Value::Null)
    return makeError(path + ": chat_template: expected a text, or a list of named ones");
  return Error::success();
}

/// Adds the tokens that the member `key` names: of one role, or an object of several.
static Error addTokens(StringRef key, const json::Value &value, StringRef path,
                       TokenizerConfig &config) {
  auto add = [&](StringRef name, const json::Value &token) {
    bool isKnown =
        llvm::any_of(config.specialTokens, [&](const auto &known) { return known.first == name; });
    if (std::optional<std::string> content = contentOf(token); content && !isKnown)
      config.specialTokens.emplace_back(name, std::move(*content));
  };
  if (key.ends_with("_token"))
    add(key, value);
  else if (const json::Object *tokens = value.getAsObject())
    for (const auto &[name, token] : *tokens) {
      if (!contentOf(token))
        return makeError(path + ": " + key + "." + name.str() + ": expected a token");
      add(name, token);
    }
  return Error::success();
}

static Error readConfig(StringRef path, TokenizerConfig &config) {
  if (!sys::fs::exists(path))
    return Error::success();
  Expected<std::string> text = readSmallFile(path, maxTemplateBytes);
  if (!text)
    return text.takeError();
  if (Error error = checkUtf8(*text, path))
    return error;
  StrictJson reader(*text, path);
  auto member = [&](StringRef key) -> Error {
    // A model's own roles, such as image_token, are known to templates as well.
    bool isSpecial = key.ends_with("_token") || key == "extra_special_tokens" ||
                     key == "model_specific_special_tokens";
    if (!isSpecial && key != "chat_template")
      return reader.skip();
    Expected<StringRef> raw = reader.raw();
    if (!raw)
      return raw.takeError();
    Expected<json::Value> value = parseStrictJson(*raw, (path + ": " + key).str());
    if (!value)
      return value.takeError();
    return isSpecial ? addTokens(key, *value, path, config) : readTemplates(*value, path, config);
  };
  if (Error error = reader.object(member))
    return error;
  return reader.end();
}

Expected<ChatTemplate> ChatTemplate::openGguf(StringRef path) {
  Expected<std::unique_ptr<GgufFile>> opened = GgufFile::open(path);
  if (!opened)
    return opened.takeError();
  const GgufFile &file = **opened;
  std::optional<StringRef> text = file.text("tokenizer.chat_template");
  if (!text)
    return makeError(path + ": has no key 'tokenizer.chat_template': it is not of a model for "
                            "conversations; give the prompt as plain text");
  Expected<jinja::Template> parsed =
      jinja::Template::parse(*text, (path + ": tokenizer.chat_template").str());
  if (!parsed)
    return parsed.takeError();
  ChatTemplate made(std::move(*parsed));
  auto tokens = file.texts("tokenizer.ggml.tokens");
  for (const auto &[name, key] : specialNames) {
    std::optional<int64_t> id = file.integer(("tokenizer.ggml." + key + "_token_id").str());
    if (id && tokens && *id >= 0 && *id < int64_t(tokens->size()))
      made.specialTokens.emplace_back(name.str(), (*tokens)[*id].str());
  }
  return made;
}

Expected<ChatTemplate> ChatTemplate::open(StringRef path) {
  std::string directory = path.str();
  if (!sys::fs::is_directory(path)) {
    StringRef name = sys::path::filename(path);
    if (!name.ends_with(".json") && !name.ends_with(".model"))
      return openGguf(path);
    directory = sys::path::parent_path(path).str();
    if (directory.empty())
      directory = ".";
  }
  std::string configPath = fileIn(directory, "tokenizer_config.json"),
              ownPath = fileIn(directory, "chat_template.jinja");
  TokenizerConfig config;
  if (Error error = readConfig(configPath, config))
    return std::move(error);
  if (Error error = readConfig(fileIn(directory, "special_tokens_map.json"), config))
    return std::move(error);
  std::string place = configPath + ": chat_template";
  if (sys::fs::exists(ownPath)) {
    Expected<std::string> text = readSmallFile(ownPath, maxTemplateBytes);
    if (!text)
      return text.takeError();
    config.text = std::move(*text);
    place = ownPath;
  }
  if (!config.text && !config.names.empty())
    return makeError(configPath + ": chat_template: found the templates " +
                     join(config.names, ", ") + ", expected one named 'default'");
  if (!config.text)
    return makeError(directory + ": has no chat template, in chat_template.jinja or in "
                                 "tokenizer_config.json: it is not of a model for conversations; "
                                 "give the prompt as plain text");
  Expected<jinja::Template> parsed = jinja::Template::parse(*config.text, place);
  if (!parsed)
    return parsed.takeError();
  ChatTemplate made(std::move(*parsed));
  made.specialTokens = std::move(config.specialTokens);
  return made;
}

Expected<std::string> ChatTemplate::render(ArrayRef<ChatMessage> messages, const std::tm &now,
                                           const jinja::Value &tools) const {
  using jinja::Value;
  std::vector<Value> list;
  for (const ChatMessage &message : messages) {
    jinja::Entries members = {{Value::string("role"), Value::string(message.role)},
                              {Value::string("content"), Value::string(message.content)}};
    for (const auto &[name, value] : message.others)
      members.emplace_back(Value::string(name), value);
    list.push_back(Value::dict(std::move(members)));
  }
  std::vector<std::pair<std::string, Value>> variables = {
      {"messages", Value::list(std::move(list))},
      {"tools", tools},
      {"documents", Value::none()},
      {"add_generation_prompt", Value::boolean(true)}};
  for (const auto &[name, token] : specialTokens)
    variables.emplace_back(name, Value::string(token));
  return parsed.render(variables, now);
}

static Expected<jinja::Value> readValue(StrictJson &reader) {
  using jinja::Value;
  const char first = reader.next();
  if (first == '"') {
    Expected<StringRef> text = reader.string();
    return text ? Value::string(text->str()) : Expected<Value>(text.takeError());
  }
  if (first == '{') {
    jinja::Entries entries;
    Error error = reader.object([&](StringRef key) -> Error {
      std::string name = key.str();
      return readValue(reader).moveInto(
          entries.emplace_back(Value::string(std::move(name)), Value()).second);
    });
    return error ? Expected<Value>(std::move(error)) : Value::dict(std::move(entries));
  }
  if (first == '[') {
    std::vector<Value> items;
    Error error =
        reader.array([&]() -> Error { return readValue(reader).moveInto(items.emplace_back()); });
    return error ? Expected<Value>(std::move(error)) : Value::list(std::move(items));
  }
  Expected<StringRef> raw = reader.raw();
  if (!raw)
    return raw.takeError();
  int64_t whole;
  double real;
  if (!raw->getAsInteger(10, whole))
    return Value::integer(whole);
  if (!raw->getAsDouble(real))
    return Value::real(real);
  return *raw == "null" ? Value::none() : Value::boolean(*raw == "true");
}

Expected<jinja::Value> ctxc::templateValue(StringRef json, StringRef name) {
  StrictJson reader(json, name);
  Expected<jinja::Value> value = readValue(reader);
  if (!value)
    return value;
  if (Error error = reader.end())
    return std::move(error);
  return value;
}
