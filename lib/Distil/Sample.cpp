#include "ctxc/Distil/Sample.h"
#include "Random.h"
#include "Room.h"
#include "Sequences.h"
#include "ctxc/Numerics/Softmax.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Timer.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;

namespace {

/// So many texts at most go together, and so many bytes at most are kept of their tokens.
constexpr size_t mostTogether = 64;
constexpr int64_t mostBytes = int64_t(1) << 30;

class Sampler {
public:
  Sampler(SplitModel model, const SampleRequest &request)
      : model(model), request(request), front(request.entries  ? Front(*request.entries)
                                              : request.pinned ? Front(*request.pinned)
                                                               : Front(request.context)),
        cache(model.steps) {}
  llvm::Expected<Sampled> run();

private:
  struct Text {
    size_t number;
    size_t cached;
    std::vector<int64_t> next; ///< the tokens that have not been read
    int64_t at;                ///< the position of the first of them
    Random random;
  };

  llvm::Expected<std::vector<float>> read(llvm::ArrayRef<Text *> texts);
  llvm::Expected<std::vector<float>> read(std::vector<PassageSequence> sequences);
  llvm::Error readContext();
  llvm::Error write(size_t from, size_t count);
  llvm::Expected<int64_t> choose(llvm::ArrayRef<float> logits, Random &random);

  SplitModel model;
  const SampleRequest &request;
  const Front front;
  PassageCache cache;
  std::vector<float> afterContext; ///< the logits
  std::vector<double> weights;     ///< of the tokens, in proportion to their probabilities
  Sampled result;
};

/// Reads what each text has next. Returns the logits behind each.
llvm::Expected<std::vector<float>> Sampler::read(llvm::ArrayRef<Text *> texts) {
  std::vector<PassageSequence> sequences;
  for (Text *text : texts) {
    const int64_t from = text->at;
    text->at += text->next.size();
    auto positions = llvm::seq(from, text->at);
    sequences.push_back(
        {text->next, {positions.begin(), positions.end()}, std::nullopt, text->cached});
  }
  return read(std::move(sequences));
}

/// Reads sequences of the cache. Returns the logits behind each.
llvm::Expected<std::vector<float>> Sampler::read(std::vector<PassageSequence> sequences) {
  const size_t count = sequences.size();
  std::optional<size_t> head = model.split.program.head();
  if (!head)
    return makeError("the model has no head that gives each token's logits by itself");
  auto passage = Passage::start(model.steps, model.weights, std::move(sequences), &cache);
  if (!passage)
    return passage.takeError();
  if (llvm::Error error = passage->runUpTo(*head))
    return std::move(error);
  if (passage->rows() == 0) // entries, behind which nothing is predicted
    return std::vector<float>();
  std::vector<int64_t> last;
  for (size_t i = 0; i < count; ++i)
    last.push_back(passage->firstRow(i + 1) - 1);
  return passage->logits(last);
}

llvm::Error Sampler::readContext() {
  std::vector<PassageSequence> sequences;
  addAfter(sequences, front, {});
  sequences.front().cached = cache.add(front.size());
  return read(std::move(sequences)).moveInto(afterContext);
}

/// A token by its probability at the request's temperature: the first at which the sum of the
/// probabilities passes a random number.
llvm::Expected<int64_t> Sampler::choose(llvm::ArrayRef<float> logits, Random &random) {
  const double threshold = random.uniform();
  const float *largest = llvm::max_element(logits);
  if (!std::isfinite(*largest))
    return makeError("the logits of a token are not finite");
  if (request.temperature == 0)
    return largest - logits.begin();
  std::vector<float> scaled(logits.begin(), logits.end());
  for (float &logit : scaled)
    logit = (double(logit) - *largest) / request.temperature;
  weights.resize(logits.size());
  double sum = exponentials(scaled.data(), scaled.size(), 0, weights.data());
  if (!std::isfinite(sum))
    return makeError("the logits of a token are not finite");
  double below = 0;
  int64_t token = 0;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    if (weight == 0)
      continue;
    token = i;
    if ((below += weight) > threshold * sum)
      break;
  }
  return token;
}

/// The texts from number `from` on, all at once.
llvm::Error Sampler::write(size_t from, size_t count) {
  std::vector<Text> texts;
  for (size_t number = from; number < from + count; ++number) {
    const std::vector<int64_t> &prompt = request.prompts[number];
    int64_t capacity = front.size() + prompt.size() + request.length;
    auto cached = cache.fork(0, capacity);
    if (!cached)
      return cached.takeError();
    texts.push_back({number, *cached, prompt, front.end(), Random(request.seed, number)});
    result.texts.push_back({prompt, int64_t(prompt.size())});
  }
  auto all = llvm::make_pointer_range(texts);
  std::vector<Text *> going(all.begin(), all.end());
  for (int64_t written = 0; written < request.length && !going.empty(); ++written) {
    std::vector<Text *> reading;
    llvm::copy_if(going, std::back_inserter(reading), [](Text *t) { return !t->next.empty(); });
    std::vector<float> logits;
    if (!reading.empty())
      if (llvm::Error error = read(reading).moveInto(logits))
        return error;
    const size_t width = model.split.program.vocabulary;
    size_t row = 0;
    std::vector<Text *> left;
    for (Text *text : going) {
      llvm::ArrayRef<float> own = afterContext; // nothing stands between the context and the answer
      if (!text->next.empty())
        own = llvm::ArrayRef(logits).slice(row++ * width, width);
      auto token = choose(own, text->random);
      if (!token)
        return token.takeError();
      if (llvm::is_contained(request.stops, *token))
        continue;
      result.texts[text->number].tokens.push_back(*token);
      ++result.tokens;
      text->next = {*token};
      left.push_back(text);
    }
    going = std::move(left);
    const int64_t all = request.prompts.size() * request.length; // told at the end
    tell(request.written, std::min<int64_t>(from * request.length + (written + 1) * count, all - 1),
         all);
  }
  cache.shrink(1);
  return llvm::Error::success();
}

llvm::Expected<Sampled> Sampler::run() {
  if (front.empty())
    return makeError("the context is empty");
  if (request.entries && llvm::any_of(request.prompts, [](auto &p) { return p.empty(); }))
    return makeError("nothing is predicted behind virtual entries alone; expected a prompt");
  if (!(request.temperature >= 0) || !std::isfinite(request.temperature))
    return makeError(llvm::formatv("found a temperature of {0}, expected a number from 0 on",
                                   request.temperature));
  size_t longest = 0;
  for (const std::vector<int64_t> &prompt : request.prompts)
    longest = std::max(longest, prompt.size());
  const int64_t ofToken = Passage::bytesPerToken(model.steps);
  const int64_t each = ofToken * (front.size() + longest + request.length);
  const size_t together =
      std::clamp<int64_t>(mostBytes / std::max<int64_t>(each, 1), 1, mostTogether);
  const size_t atOnce = std::min(together, request.prompts.size());
  if (llvm::Error error = checkRoomToSample(model, front, atOnce, atOnce * each))
    return std::move(error);
  if (llvm::Error error = readContext())
    return std::move(error);
  const int64_t tokens = request.prompts.size() * request.length;
  tell(request.written, 0, tokens);
  for (size_t from = 0; from < request.prompts.size(); from += together) {
    ctxc::Timer timer(result.seconds);
    if (llvm::Error error = write(from, std::min(together, request.prompts.size() - from)))
      return std::move(error);
  }
  tell(request.written, tokens, tokens);
  return std::move(result);
}

} // namespace

llvm::Expected<Sampled> ctxc::sample(SplitModel model, const SampleRequest &request) {
  return Sampler(model, request).run();
}
