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

/// What is known of a value beside its facts: all values of one number are the same.
struct Term {
  unsigned number = 0;
  bool fixed = false; ///< it depends on settings alone
  Sources reads;      ///< the parameters, inputs and contexts that it reads, at any remove
  /// Those that by themselves move each of its entries, or else the entry is zero: at other
  /// values of that source, all else being as it is, it is different but for a null set.
  Sources movers;
};

/// Σ factor · value + constant, by numbers of values.
struct Combination {
  std::map<unsigned, double> terms;
  double constant = 0;
  bool doubtful = false; ///< something cancels but for what may be a rounding
};

/// The values of a block that differ, by their numbers: what is known of the first of each.
class Atoms {
public:
  void add(const Term &term, const Facts &facts) {
    atoms.try_emplace(term.number, Atom{term, facts});
  }
  /// The value of a number is the product of two others, entry by entry.
  void addProduct(unsigned number, unsigned a, unsigned b) { products.try_emplace(number, a, b); }

  /// Sets what is known of a sum; `term` and `facts` have what its op says, which holds too.
  void inferSum(const Combination &sum, Term &term, Facts &facts) const;

private:
  struct Atom {
    Term term;
    Facts facts;
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
