// Facts of sums of values, some of which may be the same or cancel (BlockFacts.h).
#ifndef CTXC_DIALECTS_XF_SUMFACTS_H
#define CTXC_DIALECTS_XF_SUMFACTS_H

#include "dialects/XF/Facts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include <map>

namespace ctxc::xf {

/// Parameters, inputs and contexts of a block, by number.
using Sources = llvm::BitVector;

/// What is known about a value besides its facts. Values with the same number are the same.
struct Term {
  unsigned number = 0;
  bool fixed = false; ///< it depends only on settings
  Sources reads;      ///< the parameters, inputs and contexts that it depends on
  /// The sources that move each of its entries by themselves, unless the entry is zero: if only
  /// this source changes, the entry changes, except on a null set.
  Sources movers;
};

/// Σ factor · value + constant, by numbers of values.
struct Combination {
  std::map<unsigned, double> terms;
  double constant = 0;
  bool doubtful = false; ///< something cancels, except for what may be a rounding
};

/// k, where a = k b; none where they are not proportional. An unknown number may be any.
std::optional<double> ratioOf(const Combination &a, const Combination &b);

/// The distinct values of a block, by their numbers: what is known about the first of each.
class Atoms {
public:
  /// `rounded`: what the value is rounded to on open sets, beside its limits.
  void add(const Term &term, const Facts &facts, std::vector<Combination> rounded = {}) {
    atoms.try_emplace(term.number, Atom{term, facts, std::move(rounded)});
  }
  /// The value of a number is the product of two others, entry by entry.
  void addProduct(unsigned number, unsigned a, unsigned b) { products.try_emplace(number, a, b); }

  /// What a sum is rounded to on open sets; itself is the first.
  std::vector<Combination> roundings(const Combination &sum) const;
  /// Those of them that are numbers.
  std::vector<double> limitsOf(const Combination &sum) const;

  /// Sets what is known about a sum; `term` and `facts` have what its op says, which also holds.
  void inferSum(const Combination &sum, Term &term, Facts &facts) const;

private:
  struct Atom {
    Term term;
    Facts facts;
    std::vector<Combination> rounded;
  };
  const Atom &operator[](unsigned number) const { return atoms.find(number)->second; }
  Sources ownMovers(unsigned number, llvm::ArrayRef<unsigned> left) const;
  void inferSeveral(const Combination &sum, Term &term, Facts &facts) const;
  Zeros zerosOfSum(std::vector<unsigned> left, bool hasConstant, bool elements) const;
  bool isFree(std::vector<unsigned> left) const;
  std::optional<Zeros> zerosOfProduct(const Combination &sum) const;

  std::map<unsigned, Atom> atoms;
  std::map<unsigned, std::pair<unsigned, unsigned>> products;
};

} // namespace ctxc::xf

#endif
