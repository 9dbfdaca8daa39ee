#include "PostProcessor.h"
#include "ctxc/Support/Error.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::text;

static Expected<int64_t> knownId(const Field &field, const Vocabulary &vocabulary) {
  Expected<int64_t> id = field.count();
  if (id && !vocabulary.token(*id))
    return field.fail("the vocabulary has no token of id " + Twine(*id));
  return id;
}

/// The ids of one of special_tokens.
static Expected<std::vector<int64_t>> specialIds(const Field &field, const Vocabulary &vocabulary) {
  if (Error error = field.onlyKeys({"id", "ids", "tokens"}))
    return std::move(error);
  Expected<std::vector<Field>> fields = field["ids"].array();
  if (!fields)
    return fields.takeError();
  std::vector<int64_t> ids;
  for (const Field &each : *fields) {
    Expected<int64_t> id = knownId(each, vocabulary);
    if (!id)
      return id.takeError();
    ids.push_back(*id);
  }
  return ids;
}

static Expected<PostProcessor> readTemplate(const Field &field, const Vocabulary &vocabulary) {
  if (Error error = field.onlyKeys({"type", "single", "pair", "special_tokens"}))
    return std::move(error);
  Expected<std::vector<Field>> items = field["single"].array();
  if (!items)
    return items.takeError();
  PostProcessor processor;
  bool text = false;
  for (const Field &item : *items) {
    if (Error error = item.onlyKeys({"SpecialToken", "Sequence"}))
      return std::move(error);
    bool isText = !item["Sequence"].isNull();
    if (isText == !item["SpecialToken"].isNull())
      return item.fail("expected one of 'SpecialToken' and 'Sequence'");
    Field part = item[isText ? "Sequence" : "SpecialToken"];
    if (Error error = part.onlyKeys({"id", "type_id"}))
      return std::move(error);
    Expected<std::string> name = part["id"].string();
    if (!name)
      return name.takeError();
    if (isText) {
      if (text || *name != "A")
        return item.fail("expected the sequence A, once");
      text = true;
      continue;
    }
    Expected<std::vector<int64_t>> ids = specialIds(field["special_tokens"][*name], vocabulary);
    if (!ids)
      return ids.takeError();
    std::vector<int64_t> &side = text ? processor.after : processor.before;
    side.insert(side.end(), ids->begin(), ids->end());
  }
  if (!text)
    return field["single"].fail("has no sequence A");
  return processor;
}

/// ["[SEP]", 102]
static Expected<int64_t> tokenAndId(const Field &field, const Vocabulary &vocabulary) {
  Expected<std::vector<Field>> pair = field.array();
  if (!pair)
    return pair.takeError();
  if (pair->size() != 2)
    return field.fail(Twine(pair->size()) + " elements, expected a token and its id");
  return knownId((*pair)[1], vocabulary);
}

/// BertProcessing and RobertaProcessing.
static Expected<PostProcessor> readSeparated(const Field &field, const Vocabulary &vocabulary) {
  if (Error error = field.onlyKeys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}))
    return std::move(error);
  Expected<int64_t> cls = tokenAndId(field["cls"], vocabulary);
  if (!cls)
    return cls.takeError();
  Expected<int64_t> sep = tokenAndId(field["sep"], vocabulary);
  if (!sep)
    return sep.takeError();
  return PostProcessor{{*cls}, {*sep}};
}

static Expected<PostProcessor> readSequence(const Field &field, const Vocabulary &vocabulary) {
  if (Error error = field.onlyKeys({"type", "processors"}))
    return std::move(error);
  Expected<std::vector<Field>> fields = field["processors"].array();
  if (!fields)
    return fields.takeError();
  PostProcessor all;
  for (const Field &each : *fields) {
    Expected<PostProcessor> read = PostProcessor::read(each, vocabulary);
    if (!read)
      return read;
    bool adds = !read->before.empty() || !read->after.empty();
    if (adds && (!all.before.empty() || !all.after.empty()))
      return each.fail("a second post-processor that adds tokens is not supported");
    if (adds)
      all = std::move(*read);
  }
  return all;
}

Expected<PostProcessor> PostProcessor::read(const Field &field, const Vocabulary &vocabulary) {
  if (field.isNull())
    return PostProcessor{};
  Expected<std::string> type = field.type();
  if (!type)
    return type.takeError();
  if (*type == "TemplateProcessing")
    return readTemplate(field, vocabulary);
  if (*type == "BertProcessing" || *type == "RobertaProcessing")
    return readSeparated(field, vocabulary);
  if (*type == "Sequence")
    return readSequence(field, vocabulary);
  if (*type == "ByteLevel") // concerns offsets alone
    return PostProcessor{};
  return field.fail("the post-processor " + quoted(*type) +
                    " is not supported; give token ids instead of text");
}
