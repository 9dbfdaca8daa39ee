//===- InputSources.h - which inputs of a block depend on the context ------===//
#ifndef CTXC_ANALYSIS_INPUTSOURCES_H
#define CTXC_ANALYSIS_INPUTSOURCES_H

#include "llvm/ADT/STLExtras.h"
#include <tuple>
#include <vector>

namespace ctxc {

/// None of a block's inputs, all of them, or some.
class InputSources {
public:
  InputSources(bool all = false) : all(all) {}
  /// `depends` has an entry for each input.
  explicit InputSources(std::vector<bool> depends)
      : all(!depends.empty() && llvm::all_of(depends, [](bool d) { return d; })) {
    if (!all && llvm::any_of(depends, [](bool d) { return d; }))
      some = std::move(depends);
  }

  explicit operator bool() const { return all || !some.empty(); }
  bool contains(unsigned input) const { return all || (input < some.size() && some[input]); }
  friend bool operator<(const InputSources &a, const InputSources &b) {
    return std::tie(a.all, a.some) < std::tie(b.all, b.some);
  }

private:
  bool all;
  std::vector<bool> some; ///< empty for none or all
};

} // namespace ctxc

#endif // CTXC_ANALYSIS_INPUTSOURCES_H
