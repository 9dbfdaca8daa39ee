#include "Predictions.h"
#include "ctxc/Support/Error.h"
#include <algorithm>
#include <cmath>

using namespace ctxc;

/// So many tokens of the truth, and of the student.
constexpr size_t ofTruth = 256, ofStudent = 64, together = ofTruth + ofStudent;

/// The tokens with the largest logits, at most `count`, and none that is e²⁰ times less likely than
/// the likeliest.
static std::vector<int32_t> likeliest(llvm::ArrayRef<float> logits, size_t count) {
  const float least = *std::max_element(logits.begin(), logits.end()) - 20;
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > least)
      tokens.push_back(int32_t(i));
  auto isLikelier = [&](int32_t a, int32_t b) {
    return std::pair(-logits[a], a) < std::pair(-logits[b], b);
  };
  if (tokens.size() > count) {
    std::nth_element(tokens.begin(), tokens.begin() + count, tokens.end(), isLikelier);
    tokens.resize(count);
  }
  llvm::sort(tokens);
  return tokens;
}

/// Fills a row's tokens and their probabilities.
static void choose(llvm::ArrayRef<float> truth, llvm::ArrayRef<float> student, int32_t *tokens,
                   float *probabilities) {
  std::vector<int32_t> chosen = likeliest(truth, ofTruth), more = likeliest(student, ofStudent);
  chosen.insert(chosen.end(), more.begin(), more.end());
  llvm::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  const float largest = *std::max_element(truth.begin(), truth.end());
  double sum = 0;
  for (int32_t token : chosen)
    sum += std::exp(double(truth[token]) - largest);
  for (auto [i, token] : llvm::enumerate(chosen)) {
    tokens[i] = token;
    probabilities[i] = float(std::exp(double(truth[token]) - largest) / sum);
  }
}

llvm::Expected<Predictions> ctxc::predict(Passage &truth, int64_t first, Passage &student,
                                          int64_t front, int64_t end, const ParallelFor &threads) {
  constexpr int64_t rowsTogether = 64;
  Predictions made;
  made.tokens.assign(end * together, 0);
  made.probabilities.assign(end * together, -1);
  for (int64_t at = front; at < end; at += rowsTogether) {
    const int64_t count = std::min(rowsTogether, end - at);
    auto rowsFrom = [&](int64_t from) {
      return llvm::to_vector_of<int64_t>(llvm::seq(from, from + count));
    };
    auto right = truth.logits(rowsFrom(first + at - front)), own = student.logits(rowsFrom(at));
    if (!right || !own)
      return llvm::joinErrors(right.takeError(), own.takeError());
    const size_t width = right->size() / count;
    auto isFinite = [](float x) { return std::isfinite(x); };
    if (!llvm::all_of(*right, isFinite) || !llvm::all_of(*own, isFinite))
      return makeError("the logits of a token of the text are not finite");
    threads(count, [&](int64_t begin, int64_t stop) {
      for (int64_t i = begin; i < stop; ++i)
        choose(llvm::ArrayRef(*right).slice(i * width, width),
               llvm::ArrayRef(*own).slice(i * width, width), &made.tokens[(at + i) * together],
               &made.probabilities[(at + i) * together]);
    });
  }
  return made;
}

double ctxc::pullBackDivergence(const Predictions &truth, llvm::ArrayRef<double> weights,
                                gradient::Rows &logits) {
  double loss = 0;
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const float *p = &truth.probabilities[row * together];
    auto q = logits.row(row);
    double largest = -HUGE_VAL, sum = 0, divergence = 0;
    for (size_t k = 0; k < together; ++k)
      if (p[k] >= 0)
        largest = std::max(largest, double(q[k]));
    for (size_t k = 0; k < together; ++k)
      if (p[k] >= 0)
        sum += std::exp(q[k] - largest);
    for (size_t k = 0; k < together; ++k) {
      if (p[k] < 0 || weights[row] == 0) {
        q[k] = 0;
        continue;
      }
      const double logarithm = q[k] - largest - std::log(sum);
      if (p[k] > 0)
        divergence += p[k] * (std::log(double(p[k])) - logarithm);
      q[k] = float(weights[row] * (std::exp(logarithm) - p[k]));
    }
    loss += weights[row] * divergence;
  }
  return loss;
}
