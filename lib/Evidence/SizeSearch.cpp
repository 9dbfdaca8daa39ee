#include "SizeSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace ctxc;
using xf::SizeRelation;

namespace {

struct Interval {
  int64_t low, high;
  bool isOne() const { return low == high; }
};

/// A relation between unknowns, which are numbered. A sum is Σ c x + constant = 0, a product
/// Π x^c = 1, and "is a multiple" has the multiple first.
struct Relation {
  SizeRelation::Kind kind;
  std::vector<std::pair<unsigned, int64_t>> terms;
  int64_t constant = 0; ///< of a sum; the divisor of a multiple of a number
};

class Solver {
public:
  Solver(const SizeProblem &problem, int64_t gap,
         llvm::function_ref<bool(const NewSizes &)> accept);

  /// Whether `accept` took a solution, which found() then is.
  bool run();
  NewSizes found() const;

private:
  void add(const SizeRelation &relation);

  bool search();
  bool propagate();
  bool narrow(unsigned unknown, int64_t low, int64_t high);
  bool narrow(const Relation &relation);
  bool narrowSum(const Relation &relation);
  bool narrowProduct(const Relation &relation);
  bool narrowMultiple(const Relation &relation);
  bool narrowOrder();
  bool fits() const;
  std::optional<unsigned> choose() const;
  bool isSpent() const { return failures >= allowed || tried >= mostTried; }

  static constexpr unsigned mostTried = 4;
  int64_t gap;
  llvm::function_ref<bool(const NewSizes &)> accept;
  std::vector<int64_t> sizes;
  std::vector<Interval> start, now;
  std::vector<unsigned> order; ///< unknowns that keep their order
  std::vector<Relation> relations;
  std::vector<std::vector<unsigned>> tensors;
  int64_t mostNumbers;
  std::vector<unsigned> weights; ///< how often a relation of each unknown failed
  unsigned failures = 0, allowed = 0, tried = 0;
  bool changed = false;
};

} // namespace

Solver::Solver(const SizeProblem &problem, int64_t gap,
               llvm::function_ref<bool(const NewSizes &)> accept)
    : gap(gap), accept(accept), mostNumbers(problem.mostNumbers) {
  std::set<int64_t> all = problem.ordered;
  all.insert(problem.others.begin(), problem.others.end());
  all.erase(1);
  for (int64_t size : all) {
    bool isOrdered = problem.ordered.count(size);
    if (isOrdered)
      order.push_back(sizes.size());
    sizes.push_back(size);
    start.push_back({isOrdered ? 2 : 1, size});
  }
  weights.resize(sizes.size());
  llvm::for_each(problem.relations, [&](const SizeRelation &relation) { add(relation); });
  for (llvm::ArrayRef<int64_t> shape : problem.tensors) {
    tensors.emplace_back();
    for (int64_t size : shape)
      if (size != 1)
        tensors.back().push_back(llvm::lower_bound(sizes, size) - sizes.begin());
  }
}

void Solver::add(const SizeRelation &from) {
  Relation relation{from.kind, {}};
  auto addTerm = [&](int64_t size, int64_t factor) {
    if (size == 1) {
      relation.constant += factor;
      return;
    }
    unsigned unknown = llvm::lower_bound(sizes, size) - sizes.begin();
    for (auto &[known, factors] : relation.terms)
      if (known == unknown) {
        factors += factor;
        return;
      }
    relation.terms.push_back({unknown, factor});
  };
  if (from.kind == SizeRelation::Multiple) {
    if (from.left[0] == from.right[0] || (!from.fixed && from.right[0] == 1))
      return;
    addTerm(from.left[0], 1);
    if (from.fixed)
      relation.constant = from.right[0];
    else
      addTerm(from.right[0], 1);
  } else {
    for (int64_t size : from.left)
      addTerm(size, 1);
    for (int64_t size : from.right)
      addTerm(size, -1);
    llvm::erase_if(relation.terms, [](auto term) { return term.second == 0; });
  }
  if (!relation.terms.empty())
    relations.push_back(std::move(relation));
}

//===----------------------------------------------------------------------===//
// What relations leave
//===----------------------------------------------------------------------===//

bool Solver::narrow(unsigned unknown, int64_t low, int64_t high) {
  Interval &interval = now[unknown];
  if (low > interval.low) {
    interval.low = low;
    changed = true;
  }
  if (high < interval.high) {
    interval.high = high;
    changed = true;
  }
  return interval.low <= interval.high;
}

bool Solver::narrowSum(const Relation &relation) {
  int64_t least = relation.constant, most = relation.constant;
  auto ends = [&](auto term) {
    auto [unknown, factor] = term;
    int64_t a = factor * now[unknown].low, b = factor * now[unknown].high;
    return std::pair(std::min(a, b), std::max(a, b));
  };
  for (auto term : relation.terms) {
    auto [a, b] = ends(term);
    least += a;
    most += b;
  }
  for (auto term : relation.terms) {
    auto [unknown, factor] = term;
    auto [a, b] = ends(term);
    // factor · x lies between what the others, at their ends, leave.
    int64_t low = -(most - b), high = -(least - a);
    if (factor < 0) {
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    int64_t by = std::abs(factor);
    if (!narrow(unknown, llvm::divideCeilSigned(low, by), llvm::divideFloorSigned(high, by)))
      return false;
  }
  return true;
}

bool Solver::narrowProduct(const Relation &relation) {
  // Numbers beyond 2⁵³ are rounded; what is left of them in the end is checked exactly.
  constexpr double rounding = 1e-9;
  for (auto [unknown, power] : relation.terms) {
    double low = 1, high = 1;
    for (auto [other, times] : relation.terms) {
      if (other == unknown)
        continue;
      double a = std::pow(double(now[other].low), std::abs(double(times))),
             b = std::pow(double(now[other].high), std::abs(double(times)));
      bool isOpposite = (times > 0) != (power > 0);
      low *= isOpposite ? a : 1 / b;
      high *= isOpposite ? b : 1 / a;
    }
    double root = 1 / std::abs(double(power));
    low = std::ceil(std::pow(low, root) * (1 - rounding));
    high = std::floor(std::pow(high, root) * (1 + rounding));
    double most = double(sizes.back()) + 1;
    if (!narrow(unknown, int64_t(std::min(low, most)), int64_t(std::min(high, most))))
      return false;
  }
  if (!llvm::all_of(relation.terms, [&](auto term) { return now[term.first].isOne(); }))
    return true;
  uint64_t sides[2] = {1, 1};
  for (auto [unknown, power] : relation.terms)
    for (int64_t i = 0; i < std::abs(power); ++i)
      sides[power > 0] = llvm::SaturatingMultiply<uint64_t>(sides[power > 0], now[unknown].low);
  return sides[0] == sides[1];
}

bool Solver::narrowMultiple(const Relation &relation) {
  unsigned multiple = relation.terms[0].first;
  const Interval interval = now[multiple];
  int64_t divisor = relation.constant;
  if (relation.terms.size() > 1) {
    unsigned by = relation.terms[1].first;
    if (!narrow(by, 0, interval.high) || !narrow(multiple, now[by].low, interval.high))
      return false;
    if (!now[by].isOne())
      return true;
    divisor = now[by].low;
  }
  return narrow(multiple, llvm::divideCeilSigned(interval.low, divisor) * divisor,
                interval.high / divisor * divisor);
}

bool Solver::narrow(const Relation &relation) {
  bool holds = true;
  switch (relation.kind) {
  case SizeRelation::Sum:
    holds = narrowSum(relation);
    break;
  case SizeRelation::Product:
    holds = narrowProduct(relation);
    break;
  case SizeRelation::Multiple:
    holds = narrowMultiple(relation);
    break;
  }
  if (!holds)
    for (auto term : relation.terms)
      ++weights[term.first];
  return holds;
}

/// Sizes keep their order, and a gap where one is at least twice the other.
bool Solver::narrowOrder() {
  auto keep = [&](unsigned a, unsigned b, int64_t gap) {
    if (narrow(b, now[a].low + gap, now[b].high) && narrow(a, now[a].low, now[b].high - gap))
      return true;
    ++weights[a];
    ++weights[b];
    return false;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    if (!keep(order[i - 1], order[i], 1))
      return false;
    size_t j = i;
    while (j > 0 && 2 * sizes[order[j - 1]] > sizes[order[i]])
      --j;
    if (j > 0 &&
        !keep(order[j - 1], order[i], std::min(gap, sizes[order[i]] - sizes[order[j - 1]])))
      return false;
  }
  return true;
}

/// Whether the tensors may have few enough entries.
bool Solver::fits() const {
  uint64_t numbers = 0;
  for (llvm::ArrayRef<unsigned> shape : tensors) {
    uint64_t entries = 1;
    for (unsigned unknown : shape)
      entries = llvm::SaturatingMultiply<uint64_t>(entries, now[unknown].low);
    numbers = llvm::SaturatingAdd(numbers, entries);
  }
  return numbers <= uint64_t(mostNumbers);
}

bool Solver::propagate() {
  do {
    changed = false;
    if (!narrowOrder() ||
        !llvm::all_of(relations, [&](const Relation &relation) { return narrow(relation); }))
      return false;
  } while (changed);
  return fits();
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

std::optional<unsigned> Solver::choose() const {
  std::optional<unsigned> best;
  for (unsigned i = 0; i < now.size(); ++i)
    if (!now[i].isOne() && (!best || weights[i] > weights[*best]))
      best = i;
  return best;
}

bool Solver::search() {
  if (!propagate()) {
    ++failures;
    return false;
  }
  std::optional<unsigned> unknown = choose();
  if (!unknown) {
    ++tried;
    return accept(found());
  }
  const std::vector<Interval> before = now;
  for (int64_t to = before[*unknown].low; to <= before[*unknown].high && !isSpent(); ++to) {
    now = before;
    now[*unknown] = {to, to};
    if (!fits()) // nor does any larger number
      return false;
    if (search())
      return true;
  }
  return false;
}

NewSizes Solver::found() const {
  NewSizes result{{1, 1}};
  for (auto [size, interval] : llvm::zip_equal(sizes, now))
    result[size] = interval.low;
  return result;
}

bool Solver::run() {
  constexpr unsigned mostFailures = 1 << 14;
  for (allowed = 256; allowed <= mostFailures && tried < mostTried; allowed *= 2) {
    failures = 0;
    now = start;
    if (search())
      return true;
    if (!isSpent())
      return false; // there is no other
  }
  return false;
}

std::optional<NewSizes> ctxc::findSizes(const SizeProblem &problem,
                                        llvm::function_ref<bool(const NewSizes &)> accept) {
  for (int64_t gap = 1; gap <= 64; gap *= 2) {
    Solver solver(problem, gap, accept);
    if (solver.run())
      return solver.found();
  }
  return std::nullopt;
}
