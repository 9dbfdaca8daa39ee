#include "ctxc/Verify/Sink.h"
#include <algorithm>
#include <cmath>

using namespace ctxc;

/// Found sinks are longer by far; the states of random weights differ by less.
static constexpr double longer = 4;

std::optional<Sink> ctxc::findSink(llvm::ArrayRef<std::vector<double>> lengths) {
  Sink most;
  for (auto [layer, row] : llvm::enumerate(lengths)) {
    if (row.size() < 2)
      continue;
    std::vector<double> others(row.begin() + 1, row.end());
    auto middle = others.begin() + others.size() / 2;
    std::nth_element(others.begin(), middle, others.end());
    if (double times = *middle > 0 ? row.front() / *middle : 0; times > most.times)
      most = {int64_t(layer), times};
  }
  return most.times > longer && std::isfinite(most.times) ? std::optional(most) : std::nullopt;
}

/// The norm of each row of each layer's output, in order.
static LayerObserver recordLengths(std::vector<std::vector<double>> &lengths) {
  return [&lengths](int64_t layer, llvm::ArrayRef<double> rows, int64_t count) {
    if (layer < 0 || count == 0)
      return;
    lengths.resize(std::max<size_t>(lengths.size(), layer + 1));
    const size_t width = rows.size() / count;
    for (int64_t row = 0; row < count; ++row) {
      double square = 0;
      for (double x : rows.slice(row * width, width))
        square += x * x;
      lengths[layer].push_back(std::sqrt(square));
    }
  };
}

llvm::Expected<std::vector<std::vector<double>>> ctxc::lengthsOf(Executor &executor,
                                                                 llvm::ArrayRef<int64_t> tokens) {
  std::vector<std::vector<double>> lengths;
  ForwardOptions options;
  options.observer = recordLengths(lengths);
  auto positions = llvm::to_vector(llvm::seq<int64_t>(0, tokens.size()));
  std::unique_ptr<Run> run = executor.start(tokens.size());
  if (auto logits = executor.forward(*run, tokens, positions, options); !logits)
    return logits.takeError();
  return lengths;
}

llvm::Expected<std::optional<Sink>> ctxc::findSink(MeasureLengths measure, int64_t vocabulary,
                                                   std::optional<int64_t> positions) {
  constexpr int64_t texts = 3;
  const int64_t count = std::min<int64_t>(16, positions.value_or(16));
  std::optional<Sink> least;
  uint64_t state = 1;
  for (int64_t text = 0; text < texts; ++text) {
    std::vector<int64_t> tokens;
    for (int64_t at = 0; at < count; ++at) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      tokens.push_back((state >> 33) % vocabulary);
    }
    auto lengths = measure(tokens);
    if (!lengths)
      return lengths.takeError();
    std::optional<Sink> found = findSink(*lengths);
    if (!found)
      return std::nullopt;
    if (!least || found->times < least->times)
      least = found;
  }
  return least;
}
