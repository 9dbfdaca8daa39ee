#include "ctxc/Numerics/Metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <vector>

using namespace ctxc;

template <typename T> static int64_t argmaxOf(llvm::ArrayRef<T> logits) {
  int64_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]) && (best < 0 || logits[i] > logits[best]))
      best = i;
  return best;
}

int64_t ctxc::argmax(llvm::ArrayRef<float> logits) { return argmaxOf(logits); }
int64_t ctxc::argmax(llvm::ArrayRef<double> logits) { return argmaxOf(logits); }

/// Whether softmax is defined: no NaN, no +∞, and at least one entry above −∞.
template <typename T> static bool hasDistribution(llvm::ArrayRef<T> logits) {
  bool possible = false;
  for (T value : logits) {
    if (std::isnan(value) || value == std::numeric_limits<T>::infinity())
      return false;
    possible |= std::isfinite(value);
  }
  return possible;
}

template <typename T> static std::vector<double> softmax(llvm::ArrayRef<T> logits) {
  double largest = logits[argmaxOf(logits)], total = 0;
  std::vector<double> probabilities(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    probabilities[i] = std::exp(static_cast<double>(logits[i]) - largest);
    total += probabilities[i];
  }
  for (double &probability : probabilities)
    probability /= total;
  return probabilities;
}

/// An unsigned integer that compares as the logit does; −0 as +0.
template <typename T, typename Key> static Key orderedKey(T value) {
  value += T(0);
  Key bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  return bits & sign ? ~bits : bits | sign;
}

/// R(v): the place of each entry in ascending order, equals by index. A stable
/// radix sort of indices, eleven bits at a time.
template <typename T, typename Key> static std::vector<int32_t> ranksOf(llvm::ArrayRef<T> logits) {
  constexpr int digitBits = 11, buckets = 1 << digitBits;
  size_t size = logits.size();
  std::vector<Key> keys(size), movedKeys(size);
  std::vector<int32_t> indices(size), movedIndices(size);
  for (size_t i = 0; i < size; ++i) {
    keys[i] = orderedKey<T, Key>(logits[i]);
    indices[i] = i;
  }
  std::vector<size_t> starts(buckets);
  for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += digitBits) {
    std::fill(starts.begin(), starts.end(), 0);
    for (Key key : keys)
      ++starts[key >> shift & (buckets - 1)];
    size_t start = 0;
    for (size_t &count : starts) {
      size_t next = start + count;
      count = start;
      start = next;
    }
    for (size_t i = 0; i < size; ++i) {
      size_t to = starts[keys[i] >> shift & (buckets - 1)]++;
      movedKeys[to] = keys[i];
      movedIndices[to] = indices[i];
    }
    keys.swap(movedKeys);
    indices.swap(movedIndices);
  }
  std::vector<int32_t> ranks(size);
  for (size_t place = 0; place < size; ++place)
    ranks[indices[place]] = place;
  return ranks;
}

/// Both are permutations of 0 … V−1, so Pearson's correlation is Spearman's
/// 1 − 6 Σ (R(p) − R(q))² / (V (V² − 1)).
static double correlate(llvm::ArrayRef<int32_t> p, llvm::ArrayRef<int32_t> q) {
  if (p.size() < 2)
    return 1;
  double squares = 0, size = p.size();
  for (size_t i = 0; i < p.size(); ++i) {
    double difference = static_cast<double>(p[i]) - q[i];
    squares += difference * difference;
  }
  return 1 - 6 * squares / (size * (size * size - 1));
}

/// Applies `f` to both, to the second in a thread of its own where it takes long.
template <typename T, typename F>
static auto ofBoth(llvm::ArrayRef<T> p, llvm::ArrayRef<T> q, F f) {
  constexpr size_t large = 1 << 15;
  auto policy = p.size() < large ? std::launch::deferred : std::launch::async;
  auto second = std::async(policy, f, q);
  auto first = f(p);
  return std::make_pair(std::move(first), second.get());
}

/// The metrics of both softmaxes. Their memory is freed before the ranks are allocated.
template <typename T>
static void compareDistributions(llvm::ArrayRef<T> p, llvm::ArrayRef<T> q, TokenMetrics &metrics) {
  auto [P, Q] = ofBoth(p, q, softmax<T>);
  double absolute = 0, squares = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] != q[i]) // −∞ and −∞ are equal, not NaN apart
      metrics.linf = std::max(metrics.linf, std::fabs(static_cast<double>(p[i]) - q[i]));
    absolute += std::fabs(P[i] - Q[i]);
    double root = std::sqrt(P[i]) - std::sqrt(Q[i]);
    squares += root * root;
  }
  metrics.totalVariation = std::min(1.0, absolute / 2);
  metrics.hellinger = std::min(1.0, std::sqrt(squares / 2));
  metrics.top1Difference = P[metrics.baselineToken] - Q[metrics.baselineToken];
}

template <typename T, typename Key>
static TokenMetrics compare(llvm::ArrayRef<T> p, llvm::ArrayRef<T> q) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  TokenMetrics metrics;
  metrics.baselineToken = argmaxOf(p);
  metrics.token = argmaxOf(q);
  if (p.size() != q.size() || !hasDistribution(p) || !hasDistribution(q)) {
    metrics.linf = infinity;
    metrics.totalVariation = metrics.hellinger = metrics.top1Difference = 1;
    metrics.rankCorrelation = -1;
    metrics.finite = false;
    return metrics;
  }
  metrics.match = metrics.baselineToken == metrics.token;

  compareDistributions(p, q, metrics);
  auto [ranksOfP, ranksOfQ] = ofBoth(p, q, ranksOf<T, Key>);
  metrics.rankCorrelation = correlate(ranksOfP, ranksOfQ);
  return metrics;
}

TokenMetrics ctxc::compareLogits(llvm::ArrayRef<float> baseline, llvm::ArrayRef<float> other) {
  return compare<float, uint32_t>(baseline, other);
}

/// `logits` as floats if all of them are exactly floats, as those of compiled kernels are; else
/// empty.
static std::vector<float> asFloats(llvm::ArrayRef<double> logits) {
  std::vector<float> floats(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    floats[i] = static_cast<float>(logits[i]);
    if (static_cast<double>(floats[i]) != logits[i])
      return {};
  }
  return floats;
}

TokenMetrics ctxc::compareLogits(llvm::ArrayRef<double> baseline, llvm::ArrayRef<double> other) {
  // The same, in half the memory and time.
  if (std::vector<float> p = asFloats(baseline), q = asFloats(other); !p.empty() && !q.empty())
    return compareLogits(llvm::ArrayRef(p), llvm::ArrayRef(q));
  return compare<double, uint64_t>(baseline, other);
}
