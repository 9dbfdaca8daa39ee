#include "ReadNumbers.h"
#include "JsonFields.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/Base64.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

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
  if (Error error = expectMembers(from, {"tokens", "width", "logits", "rounding", "layers"},
                                  where + ": a run"))
    return std::move(error);
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
  result.rounding = from["rounding"].number().value_or(-1);
  if (!(result.rounding >= 0) || !std::isfinite(result.rounding))
    return wrong("a run has no rounding");
  if (Error error = rows(from["logits"], from["width"], result.tokens.size(), result.logits))
    return std::move(error);
  for (JsonView layer : layers) {
    if (Error error = expectMembers(layer, {"path", "width", "rows"}, where + ": a run's layer"))
      return std::move(error);
    std::optional<StringRef> path = layer["path"].text();
    if (!path)
      return wrong("a run's layer has no path");
    result.layers.push_back({path->str(), {}});
    if (Error error =
            rows(layer["rows"], layer["width"], result.tokens.size(), result.layers.back().rows))
      return std::move(error);
  }
  return result;
}

Expected<SourceNumbers> ctxc::pt2::readNumbers(JsonView root, const std::string &where) {
  SourceNumbers result;
  if (Error error = expectMembers(root, {"why", "weights", "random", "runs"}, where))
    return std::move(error);
  if (std::optional<StringRef> why = root["why"].text()) {
    result.why = printableLine(why->take_front(mostOfWhy));
    return result;
  }
  JsonView runs = root["runs"];
  if (!runs.isArray() || !runs.size() || runs.size() > mostRuns)
    return makeError(where + ": expected an array 'runs' of at most " + Twine(mostRuns));
  result.weights = root["weights"].text().value_or("").str();
  std::optional<bool> random = root["random"].flag();
  if (result.weights.empty() || !random)
    return makeError(where + ": expected a text 'weights', and a flag 'random'");
  result.random = *random;
  for (JsonView each : runs) {
    Expected<SourceRun> run = Reader(where).run(each);
    if (!run)
      return run.takeError();
    result.runs.push_back(std::move(*run));
  }
  return result;
}
