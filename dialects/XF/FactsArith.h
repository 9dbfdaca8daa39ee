//===- FactsArith.h - helpers that ops share to infer facts -----------------===//
#ifndef CTXC_DIALECTS_XF_FACTSARITH_H
#define CTXC_DIALECTS_XF_FACTSARITH_H

#include "dialects/XF/Facts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>

namespace ctxc::xf {

inline Zeros worse(Zeros a, Zeros b) { return std::max(a, b); }
inline Zeros better(Zeros a, Zeros b) { return std::min(a, b); }

/// Where an entry is zero, alone or together with all others.
inline Zeros anyZero(const Facts &f) { return worse(f.elements, f.vector); }

/// Derives the bound from the interval.
inline void boundByInterval(Facts &facts) {
  if (!facts.floor || !facts.ceiling)
    return;
  double bound = std::max(std::abs(*facts.floor), std::abs(*facts.ceiling));
  facts.bound = std::min(facts.bound.value_or(bound), bound);
}

/// Facts of numbers that are what they are.
inline Facts factsOfNumbers(llvm::ArrayRef<double> numbers, llvm::StringRef why) {
  auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  if (*least == *most)
    return Facts::constant(*least, *least == 0 ? why.str() : "");
  Facts facts;
  facts.floor = *least;
  facts.ceiling = *most;
  facts.bound = std::max(std::abs(*least), std::abs(*most));
  bool anyZero = llvm::is_contained(numbers, 0.0);
  facts.elements = anyZero ? Zeros::OpenSet : Zeros::Never;
  facts.vector = anyZero ? Zeros::OpenSet : Zeros::Never;
  if (anyZero)
    facts.why = (why + " in some entries").str();
  return facts;
}

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FACTSARITH_H
