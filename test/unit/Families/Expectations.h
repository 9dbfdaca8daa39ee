// What each family's paper and code say about its block, written by hand: the table of
// docs/families.md must agree, or explain why it does not.
#ifndef CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H
#define CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H

#include <string>
#include <vector>

namespace ctxc::test {

/// The layers of a checkpoint that have one structure. Structures are counted from the first layer
/// on.
struct Layers {
  Layers(const char *golden, size_t structure = 0) : golden(golden), structure(structure) {}
  std::string golden;
  size_t structure;
};

/// One row of the table. A family whose configs give blocks of different forms has several rows.
struct Expectation {
  const char *name, *modelType;
  std::vector<Layers> layers; ///< of this row; the first are shown
  const char *form;           ///< sequential or parallel
  const char *before, *after; ///< norms before linears, and after a branch
  const char *output;         ///< a parameter that suffices to control the output
  const char *verdict;        ///< by the paper's theorems
  /// Why ctxc's output control patches something else, or more; null where it patches `output`.
  const char *argument;
};

constexpr const char *postNorm =
    "The scale of the norm behind the branch is enough where no entry of its data is (nearly) "
    "zero, and real activations have such entries: the change is the difference divided by them. "
    "The default plan gives the direction to the matrix before the norm and the lengths to the "
    "scale, which bounds both changes; `--plan` with the scale and without the matrix, or "
    "`--update naive`, is the scale alone.";

inline const std::vector<Expectation> &expectations() {
  static const std::vector<Expectation> rows = {
#include "Expectations.def"
  };
  return rows;
}

/// Model types whose blocks are those of another type, with a config of another form.
struct Alias {
  const char *modelType, *of;
};
constexpr Alias aliases[] = {{"gpt-sw3", "gpt2"}};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_FAMILIES_EXPECTATIONS_H
