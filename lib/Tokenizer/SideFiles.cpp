#include "SideFiles.h"
#include "Field.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "ctxc/Tokenizer/TokenizerKeys.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

namespace {

/// One of the files: its members in their order; none where it is absent.
struct File {
  std::string path;
  std::vector<std::pair<std::string, json::Value>> values;

  static Expected<File> read(StringRef directory, StringRef name) {
    SmallString<256> path(directory);
    sys::path::append(path, name);
    File file{path.str().str(), {}};
    if (!sys::fs::exists(path))
      return file;
    Expected<std::string> text = readSmallFile(file.path, 64 << 20);
    if (!text)
      return text.takeError();
    if (Error error = checkUtf8(*text, file.path))
      return std::move(error);
    StrictJson reader(*text, file.path);
    Error error = reader.object([&](StringRef key) -> Error {
      std::string name = key.str();
      Expected<StringRef> raw = reader.raw();
      if (!raw)
        return raw.takeError();
      Expected<json::Value> value = parseStrictJson(*raw, file.path + ": " + name);
      if (value)
        file.values.emplace_back(name, std::move(*value));
      return value.takeError();
    });
    if (error)
      return std::move(error);
    if (Error error = reader.end())
      return std::move(error);
    return file;
  }
  /// Checks that `table` knows the keys.
  Error check(const KeyTable &table) const {
    json::Object all;
    for (const auto &[key, value] : values)
      all[key] = value;
    json::Value whole(std::move(all));
    return Field(&whole, path).followsTable(table);
  }
  std::vector<std::pair<std::string, Field>> members() const {
    std::vector<std::pair<std::string, Field>> fields;
    for (const auto &[key, value] : values)
      fields.emplace_back(key, Field(&value, path + ": " + key));
    return fields;
  }
};

/// The tokens so far, each once.
class Tokens {
public:
  json::Array all;
  StringSet<> contents;

  void add(StringRef content, bool isSpecial) {
    add(json::Object{
        {"content", content.str()}, {"special", isSpecial}, {"normalized", !isSpecial}});
  }
  /// "…", or {"content": "…", "lstrip": …, …}.
  Error add(const Field &field, std::optional<bool> isSpecial) {
    if (field.isString()) {
      add(*field.string(), isSpecial.value_or(true));
      return Error::success();
    }
    json::Object token;
    Expected<std::string> content = field["content"].string();
    if (!content)
      return content.takeError();
    token["content"] = *content;
    Expected<bool> special = field["special"].boolean(false);
    if (!special)
      return special.takeError();
    token["special"] = isSpecial.value_or(*special);
    for (StringRef key : {"lstrip", "rstrip", "single_word", "normalized"}) {
      Expected<bool> flag =
          field[key].boolean(key == "normalized" && !isSpecial.value_or(*special));
      if (!flag)
        return flag.takeError();
      token[key] = *flag;
    }
    add(std::move(token));
    return Error::success();
  }

private:
  void add(json::Object token) {
    if (contents.insert(*token.getString("content")).second)
      all.push_back(std::move(token));
  }
};

using Members = std::vector<std::pair<std::string, Field>>;

} // namespace

static constexpr StringLiteral roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

/// Tokens that a role names: the usual roles first, then a model's own, such as "image_token".
static Error addNamed(const Members &members, Tokens &tokens) {
  auto addIf = [&](auto isRole) -> Error {
    for (const auto &[key, value] : members)
      if (isRole(key) && (value.isString() || value.isObject()))
        if (Error error = tokens.add(value, true))
          return error;
    return Error::success();
  };
  for (const auto &[key, value] : members)
    if (is_contained(roles, key) && !value.isString() && !value.isObject() && !value.isNull())
      return value.fail("expected a token, as a text or with its flags");
  for (StringRef role : roles)
    if (Error error = addIf([&](StringRef key) { return key == role; }))
      return error;
  return addIf([&](StringRef key) { return key.ends_with("_token"); });
}

/// Special tokens without a role.
static Error addExtra(const Members &members, Tokens &tokens) {
  for (const auto &[key, value] : members) {
    if (!is_contained(
            {"additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens"},
            StringRef(key)))
      continue;
    std::vector<Field> list;
    if (value.isObject()) {
      for (const auto &[name, token] : *value.object())
        list.push_back(token);
    } else if (!value.isNull()) {
      auto read = value.array();
      if (!read)
        return read.takeError();
      list = std::move(*read);
    }
    for (const Field &token : list)
      if (Error error = tokens.add(token, true))
        return error;
  }
  return Error::success();
}

/// The tokens of added_tokens.json that transformers takes for special ones.
static StringSet<> specialOf(const Members &config, const Members &map) {
  StringSet<> special;
  auto add = [&](const Field &field) {
    if (field.isString())
      special.insert(*field.string());
  };
  for (const Members *members : {&config, &map})
    for (const auto &[key, value] : *members) {
      if (is_contained(roles, key))
        add(members == &map && value.isObject() ? value["content"] : value);
      if (!StringRef(key).ends_with("_special_tokens") || value.isNull() || value.isObject())
        continue;
      Expected<std::vector<Field>> list = value.array();
      if (list)
        llvm::for_each(*list, add);
      else
        consumeError(list.takeError()); // addExtra says it
    }
  return special;
}

/// {"ID": {"content": …}, …}, by ascending ids.
static Error addDecoder(const Field &decoder, Tokens &tokens) {
  auto members = decoder.object();
  if (!members)
    return members.takeError();
  std::map<int64_t, Field> sorted;
  for (const auto &[key, token] : *members) {
    int64_t id;
    if (StringRef(key).getAsInteger(10, id) || id < 0)
      return token.fail("expected an id as the key of a token");
    sorted.emplace(id, token);
  }
  for (const auto &[id, token] : sorted)
    if (Error error = tokens.add(token, std::nullopt))
      return error;
  return Error::success();
}

/// {"TOKEN": id, …}, by ascending ids.
static Error addEncoder(const Members &members, const StringSet<> &named, Tokens &tokens) {
  std::map<int64_t, std::string> sorted;
  for (const auto &[token, field] : members) {
    Expected<int64_t> id = field.count();
    if (!id)
      return id.takeError();
    if (!sorted.emplace(*id, token).second)
      return field.fail("the id " + Twine(*id) + " is also given to " + quoted(sorted[*id]));
  }
  for (const auto &[id, token] : sorted)
    tokens.add(token, named.contains(token));
  return Error::success();
}

/// The model_type of a directory's config.json; empty where there is none.
static Expected<std::string> readModelType(StringRef directory) {
  SmallString<256> path(directory);
  sys::path::append(path, "config.json");
  if (!sys::fs::exists(path))
    return "";
  Expected<std::string> text = readSmallFile(path, 16 << 20);
  if (!text)
    return text.takeError();
  Expected<json::Value> config = parsePythonJson(*text, path);
  if (!config)
    return config.takeError();
  const json::Object *keys = config->getAsObject();
  return keys ? keys->getString("model_type").value_or("").str() : "";
}

Expected<SideFiles> SideFiles::read(StringRef directory) {
  Expected<File> config = File::read(directory, "tokenizer_config.json");
  Expected<File> map = File::read(directory, "special_tokens_map.json");
  Expected<File> encoder = File::read(directory, "added_tokens.json");
  if (!config || !map || !encoder)
    return joinErrors(joinErrors(config.takeError(), map.takeError()), encoder.takeError());
  if (Error error =
          joinErrors(config->check(tokenizerConfigKeys), map->check(specialTokensMapKeys)))
    return std::move(error);
  Members keys = config->members();
  SideFiles files;
  if (Error error = readModelType(directory).moveInto(files.modelType))
    return std::move(error);
  Tokens tokens;
  files.isThere = !config->values.empty() || !map->values.empty() || !encoder->values.empty();
  bool hasDecoder = false;
  std::optional<bool> splits, legacy;
  for (const auto &[key, value] : keys) {
    if (key == "model_specific_special_tokens" && !value.isNull() && !value.isObject())
      return value.fail("expected an object of tokens by name");
    if (key == "added_tokens_decoder") {
      hasDecoder = true;
      if (Error error = addDecoder(value, tokens))
        return std::move(error);
    }
    if (key == "tokenizer_class" && !value.isNull()) {
      std::string name;
      if (Error error = value.string().moveInto(name))
        return std::move(error);
      files.isLlama = is_contained({"LlamaTokenizer", "LlamaTokenizerFast"}, name);
      files.isBert = is_contained({"BertTokenizer", "BertTokenizerFast"}, name);
    }
    for (auto [name, flag] :
         {std::pair<StringRef, std::optional<bool> *>{"split_special_tokens", &splits},
          {"legacy", &legacy},
          {"add_bos_token", &files.addBos},
          {"add_eos_token", &files.addEos},
          {"add_prefix_space", &files.addPrefixSpace},
          {"do_lower_case", &files.lowers},
          {"strip_accents", &files.stripAccents},
          {"tokenize_chinese_chars", &files.spacesChinese}}) {
      if (key != name || value.isNull())
        continue;
      Expected<bool> read = value.boolean();
      if (!read)
        return read.takeError();
      *flag = *read;
    }
  }
  files.splitsSpecial = splits.value_or(false);
  files.isLegacy = legacy.value_or(false);
  if (!hasDecoder) { // older files; of one role, the map's token holds
    Members named = map->members();
    if (Error error = addEncoder(encoder->members(), specialOf(keys, named), tokens))
      return std::move(error);
    llvm::erase_if(keys, [&](const auto &each) {
      return is_contained(map_range(named, [](const auto &m) { return m.first; }), each.first);
    });
    llvm::append_range(keys, named);
  }
  if (Error error = addNamed(keys, tokens))
    return std::move(error);
  if (Error error = addExtra(keys, tokens))
    return std::move(error);
  for (const auto &[key, value] : keys)
    if (key == "bos_token" || key == "eos_token") {
      Field content = value.isObject() ? value["content"] : value;
      if (content.isString())
        (key == "bos_token" ? files.bos : files.eos) = *content.string();
    }
  files.added = std::move(tokens.all);
  return files;
}
