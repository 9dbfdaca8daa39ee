#include "dialects/XF/SumFacts.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace ctxc::xf;

/// The movers of a term that no other of `left` reads.
Sources Atoms::ownMovers(unsigned number, llvm::ArrayRef<unsigned> left) const {
  Sources own = (*this)[number].term.movers;
  for (unsigned other : left)
    if (other != number)
      own.reset((*this)[other].term.reads);
  return own;
}

/// Of factor · a + constant.
static Facts ofOne(const Facts &a, double factor, double constant) {
  Facts facts = a;
  facts.total.reset();
  facts.limits.clear();
  auto map = [&](double x) { return factor * x + constant; };
  if (factor < 0)
    std::swap(facts.floor, facts.ceiling);
  for (std::optional<double> *side : {&facts.floor, &facts.ceiling})
    if (*side)
      *side = map(**side);
  if (facts.levels)
    for (double &level : *facts.levels)
      level = map(level);
  if (facts.bound)
    facts.bound = std::abs(factor) * *facts.bound + std::abs(constant);
  if (facts.length)
    facts.length = std::abs(factor) * *facts.length;
  if (constant == 0)
    return facts;
  facts.length.reset();
  facts.bothSigns = facts.zeroSomewhere = false;
  facts.why.clear();
  bool avoids = facts.excludes(0) || !a.piecewise || a.free ||
                (facts.levels && llvm::none_of(*facts.levels, [&](double level) {
                   return std::abs(level) <= 1e-6 * std::abs(constant);
                 }));
  facts.elements = facts.vector = avoids ? Zeros::NullSet : Zeros::OpenSet;
  if (!avoids)
    facts.why = "the terms of a sum may cancel on an open set";
  return facts;
}

/// Where a sum of different values vanishes (BlockFacts.h).
Zeros Atoms::zerosOfSum(std::vector<unsigned> left, bool hasConstant, bool elements) const {
  auto zerosOf = [&](const Atom &atom) {
    return elements ? std::max(atom.facts.elements, atom.facts.vector) : atom.facts.vector;
  };
  while (!left.empty()) {
    if (llvm::all_of(left, [&](unsigned n) { return (*this)[n].term.fixed; }))
      return Zeros::OpenSet;
    bool isAnalytic = llvm::none_of(left, [&](unsigned n) { return (*this)[n].facts.piecewise; });
    if (left.size() == 1 && !hasConstant)
      return std::max(Zeros::NullSet, zerosOf((*this)[left[0]]));
    if (isAnalytic && llvm::any_of(left, [&](unsigned n) {
          return zerosOf((*this)[n]) != Zeros::OpenSet && !(*this)[n].term.fixed;
        }))
      return Zeros::NullSet;
    auto moved =
        llvm::find_if(left, [&](unsigned number) { return ownMovers(number, left).any(); });
    if (moved == left.end())
      return Zeros::OpenSet;
    if (zerosOf((*this)[*moved]) != Zeros::OpenSet)
      return Zeros::NullSet;
    left.erase(moved); // where it is zero, the others are left
  }
  return hasConstant ? Zeros::NullSet : Zeros::OpenSet;
}

/// Whether each entry of the sum is moved by a number of its own: as above, where that of a term
/// is not cancelled by another's.
bool Atoms::isFree(std::vector<unsigned> left) const {
  while (!left.empty()) {
    auto moved =
        llvm::find_if(left, [&](unsigned number) { return ownMovers(number, left).any(); });
    if (moved == left.end())
      return llvm::any_of(left, [&](unsigned n) { return (*this)[n].facts.free; }) &&
             llvm::none_of(left, [&](unsigned n) { return (*this)[n].facts.piecewise; });
    if ((*this)[*moved].facts.free)
      return true;
    left.erase(moved);
  }
  return false;
}

/// Where c a ⊙ b + d a = a ⊙ (c b + d) is zero; none where the sum is no such.
std::optional<Zeros> Atoms::zerosOfProduct(const Combination &sum) const {
  if (sum.terms.size() != 2 || sum.constant != 0)
    return std::nullopt;
  auto anyZero = [](const Facts &f) { return std::max(f.elements, f.vector); };
  auto first = *sum.terms.begin(), second = *std::next(sum.terms.begin());
  for (auto [product, factor] : {std::pair(first, second), std::pair(second, first)}) {
    auto found = products.find(product.first);
    if (found == products.end())
      continue;
    auto [a, b] = found->second;
    if (b == factor.first)
      std::swap(a, b);
    if (a != factor.first)
      continue;
    Facts other = ofOne((*this)[b].facts, product.second, factor.second);
    return std::max({Zeros::NullSet, anyZero((*this)[a].facts), anyZero(other)});
  }
  return std::nullopt;
}

void Atoms::inferSeveral(const Combination &sum, Term &term, Facts &facts) const {
  std::vector<unsigned> left;
  for (auto [number, factor] : sum.terms)
    left.push_back(number);
  bool hasConstant = sum.constant != 0;
  facts.elements = zerosOfSum(left, hasConstant, /*elements=*/true);
  facts.vector = std::min(facts.elements, zerosOfSum(left, hasConstant, /*elements=*/false));
  if (std::optional<Zeros> zeros = zerosOfProduct(sum)) {
    facts.elements = std::min(facts.elements, *zeros);
    facts.vector = std::min(facts.vector, *zeros);
  }
  if (facts.elements == Zeros::OpenSet && facts.why.empty())
    facts.why = "the terms of a sum may cancel on an open set";
  facts.free = isFree(left);
  term.movers.reset();
  for (unsigned number : left) {
    const Facts &each = (*this)[number].facts;
    if (each.elements != Zeros::OpenSet && each.vector != Zeros::OpenSet)
      term.movers |= ownMovers(number, left);
  }
}

void Atoms::inferSum(const Combination &sum, Term &term, Facts &facts) const {
  if (sum.terms.empty()) {
    facts = Facts::constant(sum.constant, sum.constant == 0 ? "its terms cancel" : "");
  } else if (sum.terms.size() == 1) {
    auto [number, factor] = *sum.terms.begin();
    Facts one = ofOne((*this)[number].facts, factor, sum.constant);
    if (facts.length)
      one.length = std::min(one.length.value_or(*facts.length), *facts.length);
    facts = one;
    if (sum.constant == 0)
      term.movers = (*this)[number].term.movers;
  } else {
    inferSeveral(sum, term, facts);
  }
  if (sum.doubtful) {
    facts.elements = facts.vector = Zeros::OpenSet;
    facts.why = "the terms of a sum cancel but for a rounding";
    facts.free = false;
  }
}

//===----------------------------------------------------------------------===//
// What sums are rounded to
//===----------------------------------------------------------------------===//

/// Adds `part` times `factor`; what is left of two numbers may be a rounding.
static void addTo(Combination &sum, const Combination &part, double factor) {
  auto addNumber = [&](double &to, double more) {
    to += more;
    if (std::abs(to) <= 1e-6 * std::abs(more))
      to = 0;
  };
  addNumber(sum.constant, factor * part.constant);
  for (auto [number, of] : part.terms) {
    double &to = sum.terms[number];
    addNumber(to, factor * of);
    if (to == 0)
      sum.terms.erase(number);
  }
}

std::optional<double> ctxc::xf::ratioOf(const Combination &a, const Combination &b) {
  if (std::isnan(a.constant) || std::isnan(b.constant))
    return 1;
  if (a.terms.size() != b.terms.size())
    return std::nullopt;
  if (a.terms.empty()) {
    if (a.constant == b.constant)
      return 1;
    return b.constant != 0 && a.constant != 0 ? std::optional(a.constant / b.constant)
                                              : std::nullopt;
  }
  const double ratio = a.terms.begin()->second / b.terms.begin()->second;
  for (auto [x, y] : llvm::zip(a.terms, b.terms))
    if (x.first != y.first || x.second != ratio * y.second)
      return std::nullopt;
  return a.constant == ratio * b.constant ? std::optional(ratio) : std::nullopt;
}

std::vector<Combination> Atoms::roundings(const Combination &sum) const {
  constexpr size_t most = 256;
  std::vector<Combination> all{{{}, sum.constant}};
  for (auto [number, factor] : sum.terms) {
    const Atom &atom = (*this)[number];
    std::vector<Combination> choices{{{{number, 1}}}};
    for (double limit : atom.facts.limits)
      choices.push_back({{}, limit});
    llvm::append_range(choices, atom.rounded);
    std::vector<Combination> next;
    for (const Combination &choice : choices)
      for (const Combination &before : all)
        addTo(next.emplace_back(before), choice, factor);
    all = std::move(next);
    if (all.size() > most) // any number
      return {sum, {{}, std::numeric_limits<double>::quiet_NaN()}};
  }
  return all;
}

std::vector<double> Atoms::limitsOf(const Combination &sum) const {
  // Most sums have a term that nothing takes away.
  auto isFollowed = [&](unsigned number) {
    return llvm::any_of(sum.terms, [&](auto term) {
      return llvm::any_of((*this)[term.first].rounded,
                          [&](const Combination &to) { return to.terms.count(number) > 0; });
    });
  };
  for (auto [number, factor] : sum.terms)
    if (const Atom &atom = (*this)[number];
        atom.facts.limits.empty() && atom.rounded.empty() && !isFollowed(number))
      return {};
  std::vector<double> limits;
  for (const Combination &rounded : roundings(sum))
    if (rounded.terms.empty())
      limits.push_back(rounded.constant);
  return limits;
}
