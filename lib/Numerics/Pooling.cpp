#include "ctxc/Numerics/Pooling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace ctxc;

static llvm::StringRef wordOf(PoolingKind kind) {
  switch (kind) {
  case PoolingKind::First:
    return "the first token's";
  case PoolingKind::Largest:
    return "the largest";
  case PoolingKind::Mean:
    return "the mean";
  case PoolingKind::MeanOfRoot:
    return "the sum over the root of the count";
  case PoolingKind::WeightedMean:
    return "the mean weighted by position";
  case PoolingKind::Last:
    return "the last token's";
  }
  return "";
}

std::string ctxc::describe(const Pooling &pooling) {
  std::string text = llvm::join(llvm::map_range(pooling.kinds, wordOf), " and ");
  return text + (pooling.normalize ? ", scaled to length 1" : "");
}

static void appendPooled(PoolingKind kind, llvm::ArrayRef<double> rows, int64_t width,
                         std::vector<double> &out) {
  const int64_t count = rows.size() / width;
  if (kind == PoolingKind::First || kind == PoolingKind::Last) {
    llvm::append_range(out,
                       kind == PoolingKind::First ? rows.take_front(width) : rows.take_back(width));
    return;
  }
  double divisor = count;
  if (kind == PoolingKind::MeanOfRoot)
    divisor = std::sqrt(divisor);
  if (kind == PoolingKind::WeightedMean)
    divisor = double(count) * (double(count) + 1) / 2;
  for (int64_t i = 0; i < width; ++i) {
    double largest = rows[i], sum = 0;
    for (int64_t t = 0; t < count; ++t) {
      double x = rows[t * width + i];
      largest = std::max(largest, x);
      sum += kind == PoolingKind::WeightedMean ? double(t + 1) * x : x;
    }
    out.push_back(kind == PoolingKind::Largest ? largest : sum / divisor);
  }
}

std::vector<double> ctxc::pool(const Pooling &pooling, llvm::ArrayRef<double> rows, int64_t width) {
  std::vector<double> out;
  for (PoolingKind kind : pooling.kinds)
    appendPooled(kind, rows, width, out);
  double squares = 0;
  for (double x : out)
    squares += x * x;
  if (pooling.normalize)
    for (double &x : out)
      x /= std::max(std::sqrt(squares), 1e-12); // as torch's normalize
  return out;
}
