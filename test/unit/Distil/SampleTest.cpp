// Texts that a model writes after a context.
#include "Models.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

namespace {

SampleRequest request() {
  SampleRequest request;
  request.context = {2, 5, 17, 3, 40, 22, 9, 31};
  request.prompts = {{}, {7, 19, 4}, {11}, {}, {7, 19, 4}};
  request.length = 7;
  return request;
}

std::vector<std::vector<int64_t>> sampled(Model &model, const SampleRequest &request) {
  std::vector<std::vector<int64_t>> all;
  for (TextSequence &text : llvm::cantFail(model.sample(request)).texts)
    all.push_back(std::move(text.tokens));
  return all;
}

/// The last token's logits, by the executor, of all tokens at once.
std::vector<double> logitsOf(Model &model, const std::vector<int64_t> &tokens) {
  Executor &executor = llvm::cantFail(model.executor());
  std::vector<int64_t> positions;
  llvm::append_range(positions, llvm::seq<int64_t>(0, tokens.size()));
  auto run = executor.start(tokens.size());
  return llvm::cantFail(executor.forward(*run, tokens, positions, {}));
}

} // namespace

/// What is kept from token to token is what one pass over all of them computes: with windows,
/// tables of positions, attention beside the MLP, and experts.
TEST(Sampling, WithoutTemperatureIsGreedy) {
  for (llvm::StringRef name : {"gemma3", "gpt2", "falcon", "mixtral", "llama", "bloom"}) {
    auto model = modelOf(name);
    SampleRequest asked = request();
    asked.temperature = 0;
    Sampled sampled = llvm::cantFail(model->sample(asked));
    ASSERT_EQ(sampled.texts.size(), asked.prompts.size());
    EXPECT_EQ(sampled.tokens, 5 * 7);
    for (auto [text, prompt] : llvm::zip(sampled.texts, asked.prompts)) {
      EXPECT_EQ(llvm::ArrayRef(text.tokens).take_front(text.prompt), llvm::ArrayRef(prompt));
      ASSERT_EQ(text.tokens.size(), prompt.size() + 7);
      std::vector<int64_t> tokens = asked.context;
      llvm::append_range(tokens, prompt);
      for (int64_t token : llvm::ArrayRef(text.tokens).drop_front(text.prompt)) {
        std::vector<double> logits = logitsOf(*model, tokens);
        EXPECT_EQ(token, llvm::max_element(logits) - logits.begin()) << name.str();
        tokens.push_back(token);
      }
    }
  }
}

/// Tokens come as often as their probabilities say.
TEST(Sampling, FollowsTheProbabilities) {
  for (double temperature : {1.0, 3.0}) {
    auto model = modelOf("llama");
    SampleRequest asked = request();
    asked.prompts.assign(4000, {});
    asked.length = 1;
    asked.temperature = temperature;
    std::vector<double> expected = logitsOf(*model, asked.context), found(expected.size());
    double sum = 0;
    for (double &x : expected)
      sum += x = std::exp(x / temperature);
    for (const TextSequence &text : llvm::cantFail(model->sample(asked)).texts)
      ++found[text.tokens.front()];
    // χ² over the tokens that are expected five times or more, and one cell of all others.
    double squares = 0, others[2] = {}, cells = 0;
    auto add = [&](double count, double mean) {
      squares += (count - mean) * (count - mean) / mean;
      ++cells;
    };
    for (auto [count, x] : llvm::zip(found, expected)) {
      double mean = 4000 * x / sum;
      if (mean >= 5) {
        add(count, mean);
        continue;
      }
      others[0] += count;
      others[1] += mean;
    }
    add(others[0], others[1]);
    ASSERT_GT(cells, temperature) << temperature;
    EXPECT_LT(squares, cells + 5 * std::sqrt(2 * cells)) << temperature;
  }
}

/// A text depends on its prompt, the seed and its number.
TEST(Sampling, IsDeterministic) {
  auto one = modelOf("gemma3", 1), two = modelOf("gemma3", 2);
  SampleRequest asked = request();
  std::vector<std::vector<int64_t>> texts = sampled(*one, asked);
  EXPECT_NE(texts[1], texts[4]); // the same prompt
  EXPECT_EQ(sampled(*two, asked), texts);
  asked.prompts.resize(2);
  texts.resize(2);
  EXPECT_EQ(sampled(*two, asked), texts);
  asked.seed = 1;
  EXPECT_NE(sampled(*two, asked), texts);
}

/// An answer ends in front of a token that ends it, and the other texts go on.
TEST(Sampling, Stops) {
  auto model = modelOf("llama");
  SampleRequest asked = request();
  std::vector<TextSequence> texts = llvm::cantFail(model->sample(asked)).texts;
  int64_t stop = texts[1].tokens[texts[1].prompt + 2];
  asked.stops = {stop};
  Sampled stopped = llvm::cantFail(model->sample(asked));
  int64_t count = 0;
  for (auto [before, after] : llvm::zip(texts, stopped.texts)) {
    auto end = std::find(before.tokens.begin() + before.prompt, before.tokens.end(), stop);
    EXPECT_EQ(llvm::ArrayRef(after.tokens),
              llvm::ArrayRef(before.tokens).take_front(end - before.tokens.begin()));
    count += after.tokens.size() - after.prompt;
  }
  EXPECT_EQ(stopped.tokens, count);
  EXPECT_LT(count, 5 * 7);
}

TEST(Sampling, RefusesBadInput) {
  auto model = modelOf("llama");
  auto refusal = [&](Model &model, const SampleRequest &request) {
    return messageOf(model.sample(request).takeError());
  };
  SampleRequest asked = request();
  asked.context.clear();
  EXPECT_EQ(refusal(*model, asked), "the context is empty");
  asked = request();
  asked.temperature = -1;
  EXPECT_NE(refusal(*model, asked).find("temperature"), std::string::npos);
  asked = request();
  asked.prompts[1] = {100000};
  EXPECT_NE(refusal(*model, asked).find("100000"), std::string::npos);
  asked = request();
  asked.length = 5000;
  auto learned = modelOf("gpt2"); // with a table of positions
  EXPECT_NE(refusal(*learned, asked).find("position"), std::string::npos);
  auto encoder = modelOf("bert");
  EXPECT_NE(refusal(*encoder, request()).find("those behind them"), std::string::npos);
}
