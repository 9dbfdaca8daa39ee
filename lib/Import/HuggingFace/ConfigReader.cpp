#include "ConfigReader.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

namespace {

constexpr size_t maxReported = 50;

/// Keys that change no number of a forward pass of any family: names and
/// versions, training and dropout, token roles, generation, labels, and what
/// settings of how the library's classes were run.
const StringSet<> &harmlessKeys() {
  static const StringSet<> keys{
      // what it is and who wrote it
      "architectures",
      "model_type",
      "transformers_version",
      "_name_or_path",
      "name_or_path",
      "_model_name_or_path",
      "_commit_hash",
      "auto_map",
      "tokenizer_class",
      "task_specific_params",
      "custom_pipelines",
      "transformers.js_config",
      // training
      "attention_dropout",
      "hidden_dropout",
      "resid_pdrop",
      "embd_pdrop",
      "attn_pdrop",
      "resid_dropout",
      "residual_dropout",
      "embed_dropout",
      "embedding_dropout",
      "classifier_dropout",
      "initializer_range",
      "gradient_checkpointing",
      "finetuning_task",
      // a limit that no formula here reads but llama3's rope, which asks for it
      "max_position_embeddings",
      // how it is run
      "use_cache",
      "cache_implementation",
      "torch_dtype",
      "dtype",
      "use_bfloat16",
      "torchscript",
      "return_dict",
      "output_attentions",
      "output_hidden_states",
      "attn_implementation",
      "_attn_implementation",
      "_attn_implementation_autoset",
      "experts_implementation",
      "_experts_implementation",
      "chunk_size_feed_forward",
      "is_encoder_decoder",
      "is_decoder",
      "tie_encoder_decoder",
      "tie_last_hidden_states",
      // token roles
      "bos_token_id",
      "eos_token_id",
      "pad_token_id",
      "unk_token_id",
      "sep_token_id",
      "decoder_start_token_id",
      "prefix",
      // labels
      "id2label",
      "label2id",
      "num_labels",
      "problem_type",
      // generation
      "max_length",
      "min_length",
      "max_new_tokens",
      "do_sample",
      "early_stopping",
      "num_beams",
      "num_beam_groups",
      "diversity_penalty",
      "temperature",
      "top_k",
      "top_p",
      "typical_p",
      "repetition_penalty",
      "length_penalty",
      "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size",
      "bad_words_ids",
      "num_return_sequences",
      "output_scores",
      "return_dict_in_generate",
      "forced_bos_token_id",
      "forced_eos_token_id",
      "remove_invalid_values",
      "exponential_decay_length_penalty",
      "suppress_tokens",
      "begin_suppress_tokens",
      "epsilon_cutoff",
      "eta_cutoff",
      "encoder_repetition_penalty",
  };
  return keys;
}

/// A value as messages show it: compact JSON, cut short.
std::string shown(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return quoted(*text);
  std::string text;
  raw_string_ostream(text) << value;
  return text.size() <= 60 ? text : text.substr(0, 60) + "…";
}

std::string range(double least, double most) {
  std::string text;
  raw_string_ostream(text) << format("from %g to %g", least, most);
  return text;
}

} // namespace

void Problems::add(const Twine &message) { messages.push_back(message.str()); }

Error Problems::take() {
  Error errors = Error::success();
  for (const std::string &message : ArrayRef(messages).take_front(maxReported))
    errors = joinErrors(std::move(errors), makeError(message));
  if (messages.size() > maxReported)
    errors = joinErrors(std::move(errors), makeError("and " + Twine(messages.size() - maxReported) +
                                                     " more problems"));
  messages.clear();
  return errors;
}

bool ConfigReader::has(StringRef key) const {
  const json::Value *value = json.get(key);
  return value && value->kind() != json::Value::Null;
}

const json::Value *ConfigReader::take(StringRef key) {
  read.insert(key);
  return has(key) ? json.get(key) : nullptr;
}

int64_t ConfigReader::integer(StringRef key, std::optional<int64_t> absent, int64_t least,
                              int64_t most) {
  const json::Value *value = take(key);
  if (!value) {
    if (!absent)
      problem("has no key '" + at + key + "'");
    return absent.value_or(least);
  }
  std::optional<int64_t> found = value->getAsInteger();
  if (found && *found >= least && *found <= most)
    return *found;
  problem(key, "is out of range; expected an integer from " + Twine(least) + " to " + Twine(most));
  return absent.value_or(least);
}

double ConfigReader::number(StringRef key, double absent, double least, double most) {
  const json::Value *value = take(key);
  if (!value)
    return absent;
  std::optional<double> found = value->getAsNumber();
  if (found && *found >= least && *found <= most) // false for NaN
    return *found;
  problem(key, "is out of range; expected a number " + range(least, most));
  return absent;
}

std::optional<double> ConfigReader::optionalNumber(StringRef key, std::optional<double> absent,
                                                   double least, double most) {
  if (isNull(key)) {
    read.insert(key);
    return std::nullopt;
  }
  return has(key) ? number(key, least, least, most) : absent;
}

bool ConfigReader::flag(StringRef key, bool absent) {
  const json::Value *value = take(key);
  if (!value)
    return absent;
  if (std::optional<bool> found = value->getAsBoolean())
    return *found;
  problem(key, "is not understood; expected true or false");
  return absent;
}

std::string ConfigReader::text(StringRef key, StringRef absent) {
  const json::Value *value = take(key);
  if (!value)
    return absent.str();
  if (std::optional<StringRef> found = value->getAsString())
    return found->str();
  problem(key, "is not understood; expected a string");
  return absent.str();
}

std::vector<std::string> ConfigReader::texts(StringRef key) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  std::vector<std::string> found;
  if (const json::Array *array = value->getAsArray())
    for (const json::Value &element : *array)
      if (std::optional<StringRef> text = element.getAsString())
        found.push_back(text->str());
  if (!value->getAsArray() || found.size() != value->getAsArray()->size()) {
    problem(key, "is not understood; expected an array of strings");
    return {};
  }
  return found;
}

std::vector<int64_t> ConfigReader::integers(StringRef key, int64_t least, int64_t most) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  std::vector<int64_t> found;
  if (const json::Array *array = value->getAsArray())
    for (const json::Value &element : *array)
      if (std::optional<int64_t> number = element.getAsInteger())
        if (*number >= least && *number <= most)
          found.push_back(*number);
  if (!value->getAsArray() || found.size() != value->getAsArray()->size()) {
    problem(key, "is not understood; expected an array of integers from " + Twine(least) + " to " +
                     Twine(most));
    return {};
  }
  return found;
}

/// The numbers of an array that are in the range.
static std::vector<double> numbersOf(const json::Array *array, double least, double most) {
  std::vector<double> found;
  for (const json::Value &element : array ? *array : json::Array())
    if (std::optional<double> number = element.getAsNumber())
      if (*number >= least && *number <= most)
        found.push_back(*number);
  return found;
}

std::vector<double> ConfigReader::numbers(StringRef key, double least, double most) {
  const json::Value *value = take(key);
  if (!value)
    return {};
  const json::Array *array = value->getAsArray();
  std::vector<double> found = numbersOf(array, least, most);
  if (array && found.size() == array->size())
    return found;
  problem(key, "is not understood; expected an array of numbers " + range(least, most));
  return {};
}

std::vector<double> ConfigReader::factors(StringRef key, size_t count, double least, double most) {
  std::vector<double> absent(count, 1);
  const json::Value *value = take(key);
  if (!value)
    return absent;
  const json::Array *array = value->getAsArray();
  std::vector<double> found = numbersOf(array, least, most);
  if (array && array->size() == count && found.size() == count)
    return found;
  problem(key, "is not understood; expected an array of " + Twine(count) + " numbers " +
                   range(least, most));
  return absent;
}

ConfigReader *ConfigReader::object(StringRef key) {
  for (auto &[name, reader] : nested)
    if (name == key)
      return reader.get();
  const json::Value *value = take(key);
  if (!value)
    return nullptr;
  const json::Object *found = value->getAsObject();
  if (!found) {
    problem(key, "is not understood; expected an object");
    return nullptr;
  }
  nested.emplace_back(key.str(),
                      std::make_unique<ConfigReader>(*found, file, at + key.str() + ".", problems));
  return nested.back().second.get();
}

void ConfigReader::require(StringRef key, bool absent, bool supported, StringRef why) {
  if (flag(key, absent) != supported)
    problem(key, "is not supported: " + why);
}

void ConfigReader::problem(StringRef key, const Twine &message) {
  const json::Value *value = json.get(key);
  problems.add(file + ": key " + quoted(at + key.str()) + " = " + (value ? shown(*value) : "null") +
               " " + message);
}

void ConfigReader::problem(const Twine &message) { problems.add(file + ": " + message); }

void ConfigReader::finish() {
  SmallVector<StringRef> unread;
  for (const auto &[key, value] : json) {
    StringRef name = key;
    // null is how a config says that a feature is off.
    if (value.kind() != json::Value::Null && !read.contains(name) && !harmlessKeys().contains(name))
      unread.push_back(name);
  }
  llvm::sort(unread);
  for (StringRef key : unread)
    problem(key, "is not understood and may change the numbers; remove it if it does not");
  for (auto &[name, reader] : nested)
    reader->finish();
}
