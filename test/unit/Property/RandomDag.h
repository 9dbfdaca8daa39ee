// Blocks composed at random of all ops that the reference can run: residual streams with branches
// of every form, and graphs without any order. They are small, so that thousands can be tried.
#ifndef CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
#define CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H

#include <cstdint>
#include <string>

namespace ctxc::test {

/// The text of one block, named "dag". With `nasty`, it contains what may deceive an analysis:
/// constants, values that are computed twice, sums that cancel, norms of one entry, weights that
/// add up to zero, computed parameters.
std::string randomDag(uint64_t seed, bool nasty = false);

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
