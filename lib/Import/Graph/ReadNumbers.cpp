#include "ReadNumbers.h"
#include "JsonFields.h"
#include "Note.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/Base64.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

static constexpr StringLiteral numbersEntry = "extra/ctxc.numbers.json";
/// Bounds of what is read.
static constexpr size_t mostRuns = 16, mostTokens = 4096, mostLayers = 4096;
static constexpr int64_t mostWidth = 1 << 24;
static constexpr size_t mostOfWhy = 300;

namespace {
class Reader {
public:
  explicit Reader(std::string where) : where(std::move(where)) {}

  Expected<SourceRun> run(JsonView from) const;

private:
  Error rows(JsonView text, JsonView width, size_t tokens, SampledRows &to) const;
  Error wrong(const Twine &what) const {
    return makeError(where + ": " + what + "; write the file again");
  }

  std::string where;
};
} // namespace

Error Reader::rows(JsonView text, JsonView width, size_t tokens, SampledRows &to) const {
  std::vector<char> bytes;
  std::optional<StringRef> encoded = text.text();
  to.width = width.integer().value_or(0);
  if (!encoded)
    return wrong("a run has no numbers");
  if (Error error = decodeBase64(*encoded, bytes)) {
    consumeError(std::move(error));
    return wrong("a run has numbers that are not in base64");
  }
  to.count = int64_t(bytes.size() / sizeof(float) / tokens);
  if (to.width < 1 || to.width > mostWidth || to.count < 1 || to.count > to.width ||
      size_t(to.count) * tokens * sizeof(float) != bytes.size())
    return wrong("a run has " + Twine(bytes.size()) + " bytes for " + Twine(tokens) +
                 " tokens of " + Twine(to.width) + " numbers");
  to.numbers.resize(size_t(to.count) * tokens);
  readFloats(DType::F32, bytes.data(), to.numbers);
  if (!all_of(to.numbers, [](float x) { return std::isfinite(x); }))
    return wrong("a run has numbers that are not finite");
  return Error::success();
}

Expected<SourceRun> Reader::run(JsonView from) const {
  SourceRun result;
  JsonView tokens = from["tokens"], layers = from["layers"];
  if (!tokens.isArray() || tokens.size() < 1 || tokens.size() > mostTokens || !layers.isArray() ||
      layers.size() > mostLayers)
    return wrong("a run has no tokens, or too many");
  for (JsonView token : tokens) {
    std::optional<int64_t> id = token.integer();
    if (!id || *id < 0 || *id > INT32_MAX)
      return wrong("a run has a token that is no id");
    result.tokens.push_back(*id);
  }
  result.rounding = from["rounding"].number().value_or(0);
  if (!(result.rounding >= 0) || !std::isfinite(result.rounding))
    return wrong("a run has no rounding");
  if (Error error = rows(from["logits"], from["width"], result.tokens.size(), result.logits))
    return std::move(error);
  for (JsonView layer : layers) {
    result.layers.push_back({layer["path"].text().value_or("").str(), {}});
    if (Error error =
            rows(layer["rows"], layer["width"], result.tokens.size(), result.layers.back().rows))
      return std::move(error);
  }
  return result;
}

Expected<SourceNumbers> ctxc::pt2::readNumbers(const Archive &archive) {
  SourceNumbers result;
  result.file = archive.identity();
  if (!archive.has(numbersEntry)) {
    result.why = archive.has("extra/ctxc.json")
                     ? "it was exported by an older version of ctxc; export it again"
                     : "it was not written by ctxc";
    return result;
  }
  Expected<JsonTree> file = readJson(archive, numbersEntry);
  if (!file)
    return file.takeError();
  std::string where = (archive.name() + ": " + numbersEntry).str();
  JsonView root = file->root(), runs = root["runs"];
  if (std::optional<int64_t> format = root["format"].integer(); format != 1)
    return makeError(where + ": found format " + Twine(format.value_or(0)) +
                     ", expected 1; write the file with the ctxc.export of this version");
  if (std::optional<StringRef> why = root["why"].text()) {
    result.why = printableLine(why->take_front(mostOfWhy));
    return result;
  }
  if (!runs.isArray() || !runs.size() || runs.size() > mostRuns)
    return makeError(where + ": expected an array 'runs' of at most " + Twine(mostRuns));
  result.weights = root["weights"].text().value_or("").str();
  result.random = root["random"].flag().value_or(false);
  for (JsonView each : runs) {
    Expected<SourceRun> run = Reader(where).run(each);
    if (!run)
      return run.takeError();
    result.runs.push_back(std::move(*run));
  }
  return result;
}
