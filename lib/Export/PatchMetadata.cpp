#include "PatchMetadata.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Numerics/Update.h"
#include "ctxc/Support/Count.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;

std::string ctxc::listText(ArrayRef<int64_t> values) {
  return join(map_range(values, [](int64_t v) { return std::to_string(v); }), ",");
}

namespace {

/// A decimal integer from 0 to 2^63 - 1, digits only.
bool parseInteger(StringRef text, int64_t &value) {
  return !text.empty() && all_of(text, isDigit) && !text.getAsInteger(10, value);
}

/// The tokens of a run; `row` for −1.
std::string tokensText(ArrayRef<int64_t> tokens) {
  return join(map_range(tokens, [](int64_t t) { return t == -1 ? "row" : std::to_string(t); }),
              ",");
}

bool parseTokens(StringRef text, std::vector<int64_t> &tokens) {
  for (StringRef item : split(text, ',')) {
    int64_t token = -1;
    if (item != "row" && !parseInteger(item, token))
      return false;
    tokens.push_back(token);
  }
  return true;
}

bool isDigest(StringRef text) {
  return text.size() == 64 &&
         all_of(text, [](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); });
}

} // namespace

bool ctxc::parseList(StringRef text, std::vector<int64_t> &values) {
  if (text.empty())
    return true;
  for (StringRef item : split(text, ',')) {
    int64_t value;
    if (!parseInteger(item, value))
      return false;
    values.push_back(value);
  }
  return true;
}

std::string ctxc::roundingText(double rounding) { return formatv("{0:E3}", rounding).str(); }

bool ctxc::isOfSeveral(const std::map<std::string, std::string> &strings) {
  auto version = strings.find("format_version");
  return version != strings.end() && version->second == "2";
}

std::map<std::string, std::string> ctxc::metadataStrings(const PatchMetadata &metadata) {
  std::map<std::string, std::string> strings = {{"format_version", "1"},
                                                {"model_hash", metadata.modelHash},
                                                {"tokens", tokensText(metadata.tokens)},
                                                {"position", std::to_string(metadata.position)},
                                                {"kept", listText(metadata.kept)},
                                                {"update", metadata.update},
                                                {"dtype", metadata.dtype}};
  if (metadata.factors != DType::F32) {
    strings["factors"] = nameOf(metadata.factors).str();
    strings["rounding"] = roundingText(metadata.rounding);
  }
  if (!metadata.embeddingsDigest.empty())
    strings["rows_digest"] = metadata.embeddingsDigest;
  return strings;
}

namespace {

/// Reads the metadata of a patch, key by key.
class MetadataReader {
public:
  MetadataReader(const std::map<std::string, std::string> &strings,
                 function_ref<void(const Twine &)> report)
      : strings(strings), report(report) {}

  PatchMetadata read();

private:
  /// Whether the key is there and `accept` takes its text.
  bool get(const char *key, function_ref<bool(StringRef)> accept, const char *expected);
  bool getDigest(const char *key, std::string &digest);
  bool getOneOf(const char *key, ArrayRef<StringRef> words, std::string &word);
  bool isOfThisVersion();
  void readEmbeddings(bool hasTokens);
  void readFactors();
  void checkKept();

  const std::map<std::string, std::string> &strings;
  function_ref<void(const Twine &)> report;
  PatchMetadata metadata;
};

} // namespace

bool MetadataReader::get(const char *key, function_ref<bool(StringRef)> accept,
                         const char *expected) {
  auto found = strings.find(key);
  if (found == strings.end())
    report("metadata has no '" + Twine(key) + "', expected " + expected);
  else if (!accept(found->second))
    report("found " + Twine(key) + " " + quoted(found->second) + ", expected " + expected);
  else
    return true;
  return false;
}

bool MetadataReader::getDigest(const char *key, std::string &digest) {
  digest = strings.count(key) ? strings.at(key) : "";
  return get(key, isDigest, "64 lower-case hexadecimal digits");
}

bool MetadataReader::getOneOf(const char *key, ArrayRef<StringRef> words, std::string &word) {
  std::string expected = join(words.drop_back(), ", ") + " or " + words.back().str();
  return get(
      key,
      [&](StringRef text) {
        word = text.str();
        return is_contained(words, text);
      },
      expected.c_str());
}

bool MetadataReader::isOfThisVersion() {
  auto version = strings.find("format_version");
  if (version == strings.end())
    report("metadata has no 'format_version', expected \"1\"; this is not a patch file");
  else if (isOfSeveral(strings))
    report("holds the patches of several positions, expected that of one; name the position");
  else if (version->second != "1") // which may give every other key another meaning
    report("found format_version " + quoted(version->second) +
           ", expected '1'; it was written by another version of ctxc");
  else
    return true;
  return false;
}

void MetadataReader::readEmbeddings(bool hasTokens) {
  bool hasEmbeddings = is_contained(metadata.tokens, -1);
  if (hasTokens && hasEmbeddings != (strings.count("rows_digest") > 0))
    report(hasEmbeddings
               ? "metadata has no 'rows_digest', expected that of the embeddings in place of tokens"
               : "metadata has a 'rows_digest', and no embedding stands in place of a token");
  else if (hasEmbeddings)
    getDigest("rows_digest", metadata.embeddingsDigest);
}

void MetadataReader::readFactors() {
  if (!strings.count("factors"))
    return;
  get(
      "factors",
      [&](StringRef text) {
        metadata.factors = dtypeNamed(text).value_or(DType::F32);
        return metadata.factors == DType::BF16 || metadata.factors == DType::F16;
      },
      "BF16 or F16");
  get(
      "rounding",
      [&](StringRef text) {
        return !text.getAsDouble(metadata.rounding) && metadata.rounding >= 0 &&
               std::isfinite(metadata.rounding);
      },
      "a number that is not negative");
}

void MetadataReader::checkKept() {
  for (size_t i = 0; i < metadata.kept.size(); ++i)
    if (metadata.kept[i] >= metadata.position ||
        (i > 0 && metadata.kept[i] <= metadata.kept[i - 1])) {
      report("found kept position " + Twine(metadata.kept[i]) +
             ", expected ascending positions below position " + Twine(metadata.position));
      return;
    }
}

PatchMetadata MetadataReader::read() {
  if (!isOfThisVersion())
    return std::move(metadata);
  getDigest("model_hash", metadata.modelHash);
  bool hasTokens = get(
      "tokens", [&](StringRef text) { return parseTokens(text, metadata.tokens); },
      "token ids separated by commas, or 'row' for an embedding in a token's place");
  readEmbeddings(hasTokens);
  bool hasPosition = get(
      "position", [&](StringRef text) { return parseInteger(text, metadata.position); },
      "a non-negative integer");
  bool hasKept = get(
      "kept", [&](StringRef text) { return parseList(text, metadata.kept); },
      "positions separated by commas, or nothing");
  getOneOf("update", SmallVector<StringRef>(std::begin(updateNames), std::end(updateNames)),
           metadata.update);
  getOneOf("dtype", {"f32", "bf16", "f16"}, metadata.dtype);
  readFactors();
  if (hasTokens && hasPosition && metadata.position >= static_cast<int64_t>(metadata.tokens.size()))
    report("found position " + Twine(metadata.position) + ", expected one of the " +
           counted(metadata.tokens.size(), "token"));
  if (hasKept && hasPosition)
    checkKept();
  return std::move(metadata);
}

PatchMetadata ctxc::parsePatchMetadata(const std::map<std::string, std::string> &strings,
                                       function_ref<void(const Twine &)> report) {
  return MetadataReader(strings, report).read();
}
