// Models, texts and messages for the tests of this room.
#ifndef CTXC_TEST_UNIT_DISTIL_MODELS_H
#define CTXC_TEST_UNIT_DISTIL_MODELS_H

#include "ctxc/Session/Model.h"
#include "test/unit/Goldens.h"
#include "test/unit/Session/Opened.h"

namespace ctxc::test {

inline std::unique_ptr<Model> modelOf(llvm::StringRef name, int threads = 0) {
  LoadOptions options;
  options.storage = DType::F32;
  options.threads = threads;
  return opened(golden(name), options);
}

inline std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

inline std::vector<int64_t> someTokens(int64_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * i * 7 + i * 37 + seed * 11 + 5) % 47);
  return tokens;
}

/// The logarithm of each token's probability after those before it, by the executor's logits; 0 of
/// the first.
inline std::vector<double> logarithmsOf(Executor &executor, llvm::ArrayRef<int64_t> tokens) {
  auto positions = llvm::to_vector(llvm::seq<int64_t>(0, tokens.size()));
  auto run = executor.start(tokens.size());
  ForwardOptions options;
  options.allLogits = true;
  auto logits = llvm::cantFail(executor.forward(*run, tokens, positions, options));
  const size_t width = executor.vocabulary();
  std::vector<double> result = {0};
  for (size_t at = 1; at < tokens.size(); ++at) {
    llvm::ArrayRef<double> row = llvm::ArrayRef(logits).slice((at - 1) * width, width);
    double sum = 0;
    for (double x : row)
      sum += std::exp(x);
    result.push_back(row[tokens[at]] - std::log(sum));
  }
  return result;
}

inline const std::vector<int64_t> front = {2};

inline std::vector<int64_t> context() {
  std::vector<int64_t> tokens = front;
  llvm::append_range(tokens, someTokens(11, 1));
  return tokens;
}

inline EvaluateRequest heldOut() {
  EvaluateRequest request;
  request.context = context();
  request.front = front;
  for (int64_t i = 0; i < 4; ++i)
    request.texts.push_back({someTokens(8, 40 + i), 2});
  request.unrelated.push_back({someTokens(9, 90), 0});
  return request;
}

inline DistilRequest training(int64_t rank) {
  DistilRequest request;
  request.context = context();
  request.prefix = front;
  for (int64_t i = 0; i < 6; ++i)
    request.texts.push_back({someTokens(8, 20 + i), 2});
  request.fit.rank = rank;
  return request;
}

/// What a progress is told.
struct Told {
  ProgressCall progress() {
    return [this](int64_t done, int64_t of) {
      all = of;
      calls.push_back(done);
    };
  }
  /// Nothing first, everything last and only then, and never less than before.
  bool isWhole() const {
    return calls.size() > 2 && calls.front() == 0 && calls.back() == all &&
           llvm::is_sorted(calls) && llvm::count(calls, all) == 1;
  }
  std::vector<int64_t> calls;
  int64_t all = 0;
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_DISTIL_MODELS_H
