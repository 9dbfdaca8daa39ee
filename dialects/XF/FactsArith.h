//===- FactsArith.h - helpers that ops share to infer facts -----------------===//
#ifndef CTXC_DIALECTS_XF_FACTSARITH_H
#define CTXC_DIALECTS_XF_FACTSARITH_H

#include "dialects/XF/Facts.h"
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

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FACTSARITH_H
