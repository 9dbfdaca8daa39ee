#include "Dependence.h"
#include "TextReader.h"
#include <numeric>

using namespace ctxc;

llvm::Expected<std::vector<double>> ctxc::weightsByDependence(SplitModel model,
                                                              const DistilRequest &request) {
  if (request.dependence <= 0)
    return std::vector<double>();
  auto full = TextReader::read(model, model.weights, request.context, request.texts);
  if (!full)
    return full.takeError();
  auto plain = TextReader::read(model, model.weights, request.prefix, request.texts);
  if (!plain)
    return plain.takeError();
  constexpr int64_t together = 64;
  const int64_t from = plain->firstRow(0), rows = plain->passage.rows() - from;
  std::vector<double> weights(rows);
  for (int64_t at = 0; at < rows; at += together) {
    const int64_t count = std::min(together, rows - at);
    auto logitsOf = [&](TextReader &reader) {
      int64_t first = reader.firstRow(0) + at;
      return reader.passage.logits(llvm::to_vector_of<int64_t>(llvm::seq(first, first + count)));
    };
    auto with = logitsOf(*full), without = logitsOf(*plain);
    if (!with || !without)
      return llvm::joinErrors(with.takeError(), without.takeError());
    const size_t width = with->size() / count;
    full->parallelFor(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        weights[at + i] =
            1 + request.dependence *
                    divergence(Distribution(llvm::ArrayRef(*with).slice(i * width, width)),
                               Distribution(llvm::ArrayRef(*without).slice(i * width, width)));
    });
  }
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / rows;
  if (!std::isfinite(mean))
    return makeError("the logits of a token of the text are not finite");
  for (double &weight : weights)
    weight /= mean;
  return weights;
}
